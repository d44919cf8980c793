//! Posts of chunks that a node repeats after the loss of an owner.

use http::HeaderValue;
use longshore_model::RequestNo;

use super::direct::{Direct, request};
use crate::gate::peer::{self, Peer};

#[tokio::test(start_paused = true)]
async fn a_post_is_stored_once_under_the_number_that_a_node_gave_it_and_clients_give_none() {
    let direct = Direct::start().await;
    let submitted = direct.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await.json();
    let job = submitted["id"].as_str().unwrap().to_owned();
    let token = direct.engine.worker_token(&direct.endpoint);
    let delivered = direct.send(request("GET", "/v2/demo/job-take/w", Some(&token), "")).await;
    assert_eq!(delivered.status, 200);
    let path = format!("/v2/demo/job-stream/w/{job}");
    let chunks = async || {
        let read = direct.ask("GET", &format!("/v2/demo/stream/{job}?offset=0"), "").await.json();
        read.as_array().unwrap_or_else(|| panic!("{read}")).len()
    };
    let post = async |number: Option<u64>| {
        let asked = async {
            peer::set_number(number.map(RequestNo::from_entropy));
            direct.send(request("POST", &path, Some(&token), r#"{"output":1}"#)).await.status
        };
        let client = Peer::new([10, 0, 0, 7].into(), false);
        assert_eq!(client.serve(asked).await, 200);
    };
    for (number, expected) in [(Some(1), 1), (Some(1), 1), (Some(2), 2), (Some(1), 2), (None, 3), (None, 4)] {
        post(number).await;
        assert_eq!(chunks().await, expected, "{number:?}");
    }
    // What only nodes write is ignored from clients.
    for expected in [5, 6] {
        let mut numbered = request("POST", &path, Some(&token), r#"{"output":1}"#);
        numbered.headers_mut().insert("x-longshore-post", HeaderValue::from_static("0000000000000001"));
        assert_eq!(direct.send(numbered).await.status, 200);
        assert_eq!(chunks().await, expected);
    }
}
