use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use hyper::header::{HeaderMap, HeaderValue};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use super::*;

const NOW: u64 = 1_700_000_000_000;

/// A receiver with one behaviour for every connection, and the number of connections.
struct Receiver {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

async fn receiver<F>(answer: impl Fn(TcpStream) -> F + Send + 'static) -> Receiver
where
    F: Future<Output = ()> + Send + 'static,
{
    let _installed_before = aws_lc_rs::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(answer(stream));
        }
    });
    Receiver {
        address,
        connections,
    }
}

fn delivery_request(url: &str) -> DeliveryRequest {
    let mut headers = HeaderMap::new();
    headers.insert("x-event-id", HeaderValue::from_static("7"));
    DeliveryRequest {
        url: url.parse().unwrap(),
        headers,
        body: "{}".into(),
    }
}

/// Reads requests with bodies of 2 bytes and answers each with `answer`.
async fn say(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) {
    let mut read = Vec::new();
    while let Ok(count @ 1..) = stream.read_buf(&mut read).await {
        let _whole = count;
        if read.ends_with(b"\r\n\r\n{}") {
            read.clear();
            let _cut = stream.write_all(answer).await;
        }
    }
}

async fn sent(receiver: &Receiver) -> Reply {
    let sender = HttpSender::new(Reach::Anywhere).unwrap();
    let url = format!("http://{}/hook", receiver.address);
    sender.send(delivery_request(&url), NOW).await
}

#[tokio::test]
async fn a_status_is_the_answer_and_the_connection_is_used_again() {
    let fine = receiver(async |stream| {
        say(stream, b"HTTP/1.1 204 No Content\r\n\r\n").await;
    });
    let fine = fine.await;
    let sender = HttpSender::new(Reach::Anywhere).unwrap();
    let url = format!("http://{}/hook", fine.address);
    for _ in 0..3 {
        let reply = sender.send(delivery_request(&url), NOW).await;
        assert_eq!(reply, Reply::Status(204, None));
    }
    assert_eq!(fine.connections.load(Ordering::Relaxed), 1);
    let busy = receiver(async |stream| {
        let answer = b"HTTP/1.1 503 Busy\r\nRetry-After: 120\r\ncontent-length: 2\r\n\r\nno";
        say(stream, answer).await;
    });
    assert_eq!(
        sent(&busy.await).await,
        Reply::Status(503, Some(NOW + 120_000))
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    static TARGET: Mutex<Option<SocketAddr>> = Mutex::new(None);
    let target = receiver(async |stream| say(stream, b"HTTP/1.1 200 OK\r\n\r\n").await).await;
    *TARGET.lock().unwrap() = Some(target.address);
    for status in ["301", "302", "307", "308"] {
        static STATUS: Mutex<&str> = Mutex::new("");
        *STATUS.lock().unwrap() = status;
        let moved = receiver(async |stream| {
            let to = TARGET.lock().unwrap().unwrap();
            let status = *STATUS.lock().unwrap();
            let answer = format!(
                "HTTP/1.1 {status} Moved\r\nlocation: http://{to}/\r\ncontent-length: 0\r\n\r\n"
            );
            say(stream, answer.as_bytes()).await;
        });
        let moved = sent(&moved.await).await;
        assert_eq!(moved, Reply::Status(status.parse().unwrap(), None));
    }
    assert_eq!(target.connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_answer_counts_however_its_body_ends() {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    let huge = receiver(async |mut stream| {
        let mut some = [0; 1_024];
        let _request = stream.read(&mut some).await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n";
        let _cut = stream.write_all(head).await;
        // Until the peer cuts the connection.
        while stream.write_all(&[b'a'; 65_536]).await.is_ok() {
            WRITTEN.fetch_add(65_536, Ordering::Relaxed);
        }
    });
    assert_eq!(sent(&huge.await).await, Reply::Status(200, None));
    // The system holds a few megabytes that nobody reads.
    let written = WRITTEN.load(Ordering::Relaxed);
    assert!(written < 16 << 20, "{written} bytes");
    let reset = receiver(async |stream| {
        let mut stream = stream;
        let mut some = [0; 1_024];
        let _request = stream.read(&mut some).await;
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
        let _cut = stream.write_all(half).await;
    });
    assert_eq!(sent(&reset.await).await, Reply::Status(200, None));
}

/// Paused time would jump to the next limit while bytes are under way.
#[tokio::test]
async fn a_body_that_does_not_come_is_waited_for_a_second_only() {
    let silent = receiver(async |mut stream| {
        let mut some = [0; 1_024];
        let _request = stream.read(&mut some).await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
        let _cut = stream.write_all(head).await;
        std::future::pending::<()>().await;
        drop(stream);
    });
    let silent = silent.await;
    let before = tokio::time::Instant::now();
    assert_eq!(sent(&silent).await, Reply::Status(200, None));
    let elapsed = before.elapsed();
    assert!(elapsed < PATIENCE / 2, "{elapsed:?}");
}

#[tokio::test]
async fn no_answer_is_a_failure_that_names_no_url() {
    let reset = receiver(async |stream| drop(stream)).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = silent.local_addr().unwrap();
    drop(silent);
    let rubbish = receiver(async |stream| say(stream, b"\0\0\0 hello\r\n\r\n").await).await;
    for address in [reset.address, dead, rubbish.address] {
        let sender = HttpSender::new(Reach::Anywhere).unwrap();
        let url = format!("http://{address}/s3cret?token=s3cret");
        let reply = sender.send(delivery_request(&url), NOW).await;
        let Reply::Failed(why) = reply else {
            panic!("{reply:?}");
        };
        assert!(!why.is_empty() && !why.contains("s3cret"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_hangs_is_left_after_ten_seconds() {
    let hanging = receiver(async |stream| {
        std::future::pending::<()>().await;
        drop(stream);
    });
    let hanging = hanging.await;
    let before = tokio::time::Instant::now();
    assert_eq!(sent(&hanging).await, Reply::Failed("timed out".into()));
    assert_eq!(before.elapsed().as_secs(), 10);
}

/// A receiver over TLS, whose certificate is its own and good between the first days of two years.
struct TlsReceiver {
    receiver: Receiver,
    certificate: CertificateDer<'static>,
    /// The number of connections whose client took the certificate: of no other can the receiver read a request.
    taken: Arc<AtomicUsize>,
}

async fn tls_receiver(from: i32, to: i32) -> TlsReceiver {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = taken.clone();
    let receiver = receiver(move |stream| {
        let (acceptor, counted) = (acceptor.clone(), counted.clone());
        async move {
            // An error here is a client that does not take the certificate.
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            counted.fetch_add(1, Ordering::Relaxed);
            say(stream, b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    });
    TlsReceiver {
        receiver: receiver.await,
        certificate,
        taken,
    }
}

impl TlsReceiver {
    async fn sent(&self, sender: &HttpSender) -> Reply {
        let url = format!("https://{}/hook", self.receiver.address);
        sender.send(delivery_request(&url), NOW).await
    }

    /// The numbers of its connections and of those whose client took the certificate.
    fn connections(&self) -> (usize, usize) {
        let connections = self.receiver.connections.load(Ordering::Relaxed);
        (connections, self.taken.load(Ordering::Relaxed))
    }
}

/// Even where any receiver may be called, a delivery is shown to none that cannot say who it is.
#[tokio::test]
async fn a_certificate_that_does_not_hold_is_a_failure() {
    for (from, to, wanted) in [
        (2019, 2020, "certificate expired"),
        // In time, and signed by nobody who is trusted.
        (2020, 2999, "UnknownIssuer"),
    ] {
        let server = tls_receiver(from, to).await;
        let sender = HttpSender::new(Reach::Anywhere).unwrap();
        let Reply::Failed(why) = server.sent(&sender).await else {
            panic!("{wanted}: it was called");
        };
        assert!(why.contains(wanted), "{why}");
        let (connections, taken) = server.connections();
        assert!(connections > 0 && taken == 0, "{connections} {taken}");
    }
    // The receiver answers whoever trusts its certificate.
    let server = tls_receiver(2020, 2999).await;
    let trusted = reqwest::Certificate::from_der(&server.certificate).unwrap();
    let client = Client::builder().no_proxy().tls_certs_merge([trusted]);
    let sender = HttpSender {
        client: client.build().unwrap(),
        reach: Reach::Anywhere,
    };
    assert_eq!(server.sent(&sender).await, Reply::Status(204, None));
    assert_eq!(server.connections(), (1, 1));
}

/// Resolves names to these lists of addresses, one after the other.
struct Scripted(Mutex<Vec<Vec<SocketAddr>>>);

impl Scripted {
    fn new(lists: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(lists.iter().rev().map(parse).collect())))
    }
}

impl Names for Scripted {
    fn lookup(&self, _name: String) -> Looked {
        let found = self.0.lock().unwrap().pop().unwrap_or_default();
        Box::pin(async move { Ok(found) })
    }
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_called() {
    let inside = receiver(async |stream| drop(stream)).await;
    let private = inside.address.to_string();
    for list in [
        &[private.as_str()][..],
        &["1.1.1.1:443", &private],
        &["[::ffff:127.0.0.1]:443"],
        &["169.254.169.254:80"],
    ] {
        let names = Scripted::new(&[list]);
        let sender = HttpSender::resolving(Reach::Public, names).unwrap();
        let url = format!("https://hooks.example:{}/", inside.address.port());
        let Reply::Failed(why) = sender.send(delivery_request(&url), NOW).await else {
            panic!("it was called");
        };
        assert!(why.ends_with("is not a public address"), "{why}");
    }
    assert_eq!(inside.connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_name_is_judged_each_time_it_is_looked_up() {
    let names = Scripted::new(&[&["1.1.1.1:0"], &["127.0.0.1:0"], &["1.1.1.1:0"]]);
    let guarded = Guarded {
        reach: Reach::Public,
        names,
    };
    let name = || "hooks.example".parse().unwrap();
    let first: Vec<_> = guarded.resolve(name()).await.unwrap().collect();
    assert_eq!(first, ["1.1.1.1:0".parse().unwrap()]);
    let rebound = guarded.resolve(name()).await.err().unwrap();
    assert_eq!(rebound.to_string(), "127.0.0.1 is not a public address");
    assert!(guarded.resolve(name()).await.is_ok());
}

#[tokio::test]
async fn addresses_in_urls_are_judged_without_a_lookup() {
    let inside = receiver(async |stream| drop(stream)).await;
    let sender = HttpSender::new(Reach::Public).unwrap();
    for url in [
        format!("https://{}/", inside.address),
        format!("http://{}/", inside.address),
        format!("https://[::ffff:127.0.0.1]:{}/", inside.address.port()),
        format!("https://2130706433:{}/", inside.address.port()),
    ] {
        let reply = sender.send(delivery_request(&url), NOW).await;
        assert!(matches!(reply, Reply::Barred(_)), "{url}: {reply:?}");
    }
    assert_eq!(inside.connections.load(Ordering::Relaxed), 0);
}
