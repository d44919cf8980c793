//! The environment of a worker: variables, directories, code and GPUs.

use std::fs;

use longshore_launch::{CodeFolders, Launcher as _, ShimCommand, WorkerSpec};
use longshore_model::{CodeHash, StopReason};

use crate::harness::{GRACE, SHIM, Server, every_file, launcher, sh};

#[tokio::test]
async fn secrets_are_not_on_disk_nor_in_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let secret = "correct-horse-battery";
    let mut spec = sh("[ \"$TOKEN\" = correct-horse-battery ] || exit 1; echo ready; sleep 600");
    spec.cmd[1] = spec.cmd[1].replace(secret, &["correct-horse", "-battery"].join("\"\""));
    spec.env.insert("TOKEN".into(), secret.into());
    assert!(!format!("{spec:?}").contains(secret));
    let worker = spec.worker.clone();
    server.launcher.start(spec).await.unwrap();
    server.prints(&worker, "ready").await;
    let files = every_file(dir.path());
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        assert!(!String::from_utf8_lossy(&fs::read(&file).unwrap()).contains(secret), "{}", file.display());
    }
    server.launcher.stop(&worker, GRACE, &StopReason::Operator).await.unwrap();
}

#[tokio::test]
async fn a_workdir_is_seen_but_not_shared() {
    let dir = tempfile::tempdir().unwrap();
    let workdir = dir.path().join("handler");
    fs::create_dir(&workdir).unwrap();
    fs::write(workdir.join("model.bin"), "weights").unwrap();
    fs::write(workdir.join("start.sh"), "cat model.bin; echo; ls -A; echo state > .runpod_jobs.pkl").unwrap();
    fs::write(workdir.join(".runpod_jobs.pkl"), "another worker's").unwrap();
    let mut server = Server::on(&dir);
    let spec = WorkerSpec { cmd: vec!["./start.sh".to_owned()], workdir: Some(workdir.clone()), ..sh("") };
    server.launcher.start(spec).await.unwrap();
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.log_tail.as_str()), (Some(0), "weights\nmodel.bin\nstart.sh"));
    assert_eq!(fs::read_to_string(workdir.join(".runpod_jobs.pkl")).unwrap(), "another worker's");
}

#[tokio::test]
async fn input_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    server.start("cat; echo end").await;
    assert_eq!(server.exited().await.log_tail, "end");
}

#[tokio::test]
async fn the_servers_settings_and_the_sdks_configuration_are_hidden() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    fs::create_dir_all(home.join(".runpod")).unwrap();
    fs::create_dir_all(home.join(".cache")).unwrap();
    let arguments = ["LONGSHORE_ADMIN_KEY=x".into(), format!("HOME={}", home.display()), SHIM.into()];
    let shim =
        ShimCommand { program: "env".into(), arguments: arguments.map(Into::into).to_vec(), shown_as: None };
    let mut server = Server::with_shim(&dir, shim);
    let script = "echo key=$LONGSHORE_ADMIN_KEY; ls -A $HOME";
    server.launcher.start(WorkerSpec { private_home: true, ..sh(script) }).await.unwrap();
    assert_eq!(server.exited().await.log_tail, "key=\n.cache");
}

#[tokio::test]
async fn a_worker_sees_the_gpus_of_its_placement() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    server.start("echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER").await;
    assert_eq!(server.exited().await.log_tail, "GPU-1234 PCI_BUS_ID");
}

#[tokio::test]
async fn an_unmodified_python_program_finds_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let workdir = dir.path().join("handler");
    fs::create_dir_all(workdir.join("package")).unwrap();
    fs::write(workdir.join("tools.py"), "WORD = 'hello'").unwrap();
    fs::write(workdir.join("package/__init__.py"), "from tools import WORD").unwrap();
    fs::write(workdir.join("data.txt"), "data").unwrap();
    fs::write(workdir.join("handler.py"), "import package; print(package.WORD, open('data.txt').read())")
        .unwrap();
    let mut server = Server::on(&dir);
    for command in [["python3", "handler.py"].as_slice(), &["python3", "-m", "handler"]] {
        let cmd = command.iter().map(ToString::to_string).collect();
        let spec = WorkerSpec { entrypoint: Vec::new(), cmd, workdir: Some(workdir.clone()), ..sh("") };
        server.launcher.start(spec).await.unwrap();
        assert_eq!(server.exited().await.log_tail, "hello data");
    }
}

#[tokio::test]
async fn deployed_code_is_found_where_it_is_now() {
    let dir = tempfile::tempdir().unwrap();
    let hash = "c0".repeat(32);
    let put = |place: &str, text: &str| {
        let code_dir = dir.path().join(place).join("code/hello").join(&hash);
        fs::create_dir_all(&code_dir).unwrap();
        fs::write(code_dir.join("word"), text).unwrap();
    };
    put("here", "original");
    put("there", "copy");
    for (place, word) in [("here", "original"), ("there", "copy")] {
        let code = CodeFolders::at(&dir.path().join(place).join("code"));
        let runner = ["sh", "-c", "cat word \"$0/word\""].map(str::to_owned).to_vec();
        let mut server = Server::of(launcher(&dir.path().join(place)).with_code(code, runner));
        let code: CodeHash = hash.parse().unwrap();
        assert!(server.launcher.finds_code(&code));
        server
            .launcher
            .start(WorkerSpec { entrypoint: Vec::new(), cmd: Vec::new(), code: Some(code.clone()), ..sh("") })
            .await
            .unwrap();
        assert_eq!(server.exited().await.log_tail, [word, word].concat(), "{place}");
        let own = sh("echo own; cat word");
        server.launcher.start(WorkerSpec { code: Some(code), ..own }).await.unwrap();
        assert_eq!(server.exited().await.log_tail, format!("own\n{word}"), "{place}");
        let other: CodeHash = "0".repeat(64).parse().unwrap();
        assert!(!server.launcher.finds_code(&other));
        let error = server.launcher.start(WorkerSpec { code: Some(other), ..sh("true") }).await.unwrap_err();
        assert!(error.to_string().contains("deploy it again"), "{error}");
    }
}
