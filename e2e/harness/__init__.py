"""What the black-box tests stand on: a server, clients, workers real and fake, receivers, and waiting."""
