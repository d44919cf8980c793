// The example of an endpoint, which it is tried with.

/** The input of an endpoint's example, which is a request's body; an input that stands there alone is taken, too. @param {Pick<Endpoint, "example">} endpoint @returns {any} */
export const exampleInput = ({ example }) => /** @type {any} */ (example)?.input ?? example;
