//! A private authority's certificate, and a server's certificate that it signed.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, civil::Date};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, Error,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// How long both certificates are valid, in years.
const YEARS: i16 = 10;

/// Both certificates and the key of the server, in PEM. The authority's key is dropped after its one signature, so
/// nothing else can be signed for clients that trust the authority.
pub(super) struct Pair {
    pub(super) authority: String,
    pub(super) certificate: String,
    /// The private key in PEM, which is a secret.
    pub(super) key: String,
    /// The day until which both certificates are valid, RFC 3339.
    pub(super) not_after: String,
}

impl Pair {
    /// Creates a pair for these host names and addresses, valid from yesterday: clocks in a network differ.
    ///
    /// # Errors
    ///
    /// The system has no random numbers, or a name cannot be in a certificate.
    pub(super) fn create(names: &[String]) -> Result<Self, Error> {
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        let yesterday = today.saturating_sub(1.day());
        let not_after = today.saturating_add(YEARS.years());
        let authority_key = KeyPair::generate()?;
        let authority = authority_params(yesterday, not_after, today);
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate()?;
        let certificate: Certificate =
            server_params(names, yesterday, not_after)?.signed_by(&key, &issuer)?;
        Ok(Self {
            authority: authority_certificate.pem(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            not_after: not_after.to_string(),
        })
    }
}

fn authority_params(not_before: Date, not_after: Date, today: Date) -> CertificateParams {
    let mut params = valid(CertificateParams::default(), not_before, not_after);
    params.distinguished_name = named(&format!("Longshore authority of {today}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn server_params(names: &[String], not_before: Date, not_after: Date) -> Result<CertificateParams, Error> {
    let mut params = valid(CertificateParams::new(names)?, not_before, not_after);
    params.distinguished_name = named("Longshore server");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Python refuses a certificate without it.
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// Returns a subject with this common name alone.
fn named(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

fn valid(mut params: CertificateParams, not_before: Date, not_after: Date) -> CertificateParams {
    let time = |date: Date| date_time_ymd(date.year().into(), date.month() as u8, date.day() as u8);
    params.not_before = time(not_before);
    params.not_after = time(not_after);
    params
}
