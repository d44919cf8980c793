//! What a zygote refuses: modules are written into a folder and imported by a real interpreter.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;

/// Starts a zygote that imports `module`; these modules (name, source) can be imported. The folder has their files.
fn zygote(modules: &[(&str, &str)], module: &str) -> Result<(Zygote, Child, TempDir), String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in modules {
        fs::write(folder.path().join(name).with_extension("py"), source).unwrap();
    }
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python").canonicalize().unwrap();
    // `env` finds the interpreter.
    let note = serde_json::json!({
        "pid": 1, "executable": "/usr/bin/env", "command": ["python3", "python3", "handler.py"], "argv": ["handler.py"],
        "modules": [module], "files": [folder.path().join(module).with_extension("py")],
    });
    let imports: Imports = serde_json::from_value(note).unwrap();
    let path = format!("{}:{}", runtime.display(), folder.path().display());
    let env = BTreeMap::from([
        ("PYTHONPATH".to_owned(), path),
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()),
    ]);
    let (zygote, child) = Zygote::start(&Recipe::with_env(env), &imports)?;
    Ok((zygote, child, folder))
}

/// Ends a zygote as a launcher does.
fn end((zygote, mut child, _folder): (Zygote, Child, TempDir)) {
    drop(zygote);
    assert!(child.wait().unwrap().success(), "it ends with its socket");
}

/// Why there is no zygote with a module of this source.
fn refusal(source: &str) -> String {
    match zygote(&[("module", source)], "module") {
        Ok(accepted) => {
            end(accepted);
            panic!("it was not refused");
        }
        Err(reason) => reason,
    }
}

#[test]
fn imports_that_leave_nothing_behind_are_accepted() {
    let accepted = [
        "import json, threading\nthread = threading.Thread(target=print)\nthread.start()\nthread.join()",
        "import socket\nsocket.socket().close()",
        "file = open('/etc/hostname')",
        "import ctypes, ctypes.util",
        // A module that is not there is missing in the worker, too.
        "raise ImportError('an optional package is not there')",
    ];
    for source in accepted {
        let accepted = zygote(&[("module", source)], "module").expect(source);
        assert!(accepted.0.is_current());
        end(accepted);
    }
}

#[test]
fn a_thread_is_refused() {
    let source = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), name='pinger', daemon=True).start()";
    assert_eq!(refusal(source), "an import started a thread: pinger");
}

#[test]
fn an_open_socket_is_refused() {
    let reason = refusal("import socket\nkept = socket.socket()");
    assert!(reason.starts_with("an import left socket:[") && reason.ends_with("] open"), "{reason}");
}

#[test]
fn a_failed_import_is_refused() {
    assert_eq!(refusal("1 / 0"), "the import of module failed: ZeroDivisionError: division by zero");
    assert_eq!(refusal("raise SystemExit(3)"), "the import of module failed: SystemExit: 3");
    let ended = refusal("import os; os._exit(0)");
    assert!(ended.starts_with("its process ended or did not answer"), "{ended}");
}

#[test]
fn packages_that_break_forks_are_refused() {
    for name in ["bitsandbytes", "onnxruntime"] {
        let modules = [("module", &*format!("import {name}")), (name, "")];
        let reason = zygote(&modules, "module").map(drop).unwrap_err();
        assert_eq!(reason, format!("{name} is imported by another package, and a fork cannot use it"));
    }
}

/// `torch` says so in a fork of a process that has asked for GPUs. This stands in for it.
#[test]
fn lost_cuda_is_refused() {
    let torch = "import os\nclass cuda:\n    own = os.getpid()\n    _is_in_bad_fork = staticmethod(lambda: os.getpid() != cuda.own)";
    let reason = zygote(&[("torch", torch)], "torch").map(drop).unwrap_err();
    assert_eq!(reason, "an import used CUDA");
}

/// Three threads of OpenMP's real library, which a fork lacks and waits for.
#[test]
fn used_openmp_is_refused() {
    let source = "
import ctypes
nothing = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p)
ctypes.CDLL('libgomp.so.1').GOMP_parallel(nothing, None, 3, 0)";
    assert_eq!(refusal(source), "an import used OpenMP");
    let loaded = "import ctypes\nctypes.CDLL('libgomp.so.1')";
    end(zygote(&[("module", loaded)], "module").unwrap());
}

#[test]
fn a_changed_package_makes_the_zygote_an_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("module.py");
    fs::write(&file, "").unwrap();
    let note = serde_json::json!({
        "pid": 1, "executable": "/p", "command": ["p", "h"], "argv": ["h"], "modules": [], "files": [file],
    });
    let imports: Imports = serde_json::from_value(note).unwrap();
    let before = imports.file_versions();
    assert!(before == imports.file_versions());
    fs::write(&file, "1").unwrap();
    assert!(before != imports.file_versions());
    fs::remove_file(&file).unwrap();
    assert!(before != imports.file_versions());
}
