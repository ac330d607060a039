//! Judging beside another oracle, without a signature.

use url::Url;

use super::{Signing, read::Reader};

/// A daemon that judges and records, and lets no signature out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowSetting {
    /// The oracle whose answers are compared.
    pub of: Option<Url>,
}

impl Reader<'_> {
    /// The setting of `SHADOW` and `SHADOW_OF`; `None` unless `SHADOW=1`. `trades`: there is an integrator API.
    pub fn shadow(
        &mut self,
        wanted: Option<String>,
        of: Option<String>,
        trades: bool,
    ) -> Option<ShadowSetting> {
        let wanted = match wanted.as_deref().map(str::trim) {
            None | Some("0" | "false") => false,
            Some("1" | "true") => true,
            Some(_) => {
                self.mistake("SHADOW", "expected 1 or 0");
                false
            }
        };
        if !wanted {
            if of.is_some() {
                self.mistake("SHADOW_OF", "needs SHADOW=1");
            }
            return None;
        }
        if trades {
            self.mistake(
                "SHADOW",
                "a shadow settles nothing: unset INTEGRATOR_HTTP_PORT",
            );
        }
        let of = of.and_then(|text| self.http_url("SHADOW_OF", &text));
        Some(ShadowSetting { of })
    }

    /// What a daemon signs with: nobody's key where it is a shadow.
    pub fn signing_of(
        &mut self,
        shadow: Option<&ShadowSetting>,
        own: impl FnOnce(&mut Self) -> Signing,
    ) -> Signing {
        match shadow {
            Some(_) => Signing::Nobody,
            None => own(self),
        }
    }
}
