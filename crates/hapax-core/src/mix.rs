//! The mixer and the generator behind all constants and hashes. Every stored signature depends on both, so the test
//! below compares them with published values.

/// MurmurHash3's 64-bit finaliser: a bijection in which each input bit affects each output bit.
#[inline(always)]
pub const fn fmix64(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}

/// Sebastiano Vigna's splitmix64, which makes every constant and every simulated set.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts the sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next output.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Makes a seed from eight ASCII letters, so that no constant is arbitrary.
pub(crate) const fn named_seed(name: &[u8; 8]) -> u64 {
    u64::from_be_bytes(*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares published values with the finaliser of 0 and of 1, and with the first outputs of splitmix64 for the
    /// seed 1234567 (Vigna's test).
    #[test]
    fn mixer_and_generator_agree_with_their_published_values() {
        let mut generator = SplitMix64::new(1_234_567);
        assert_eq!(generator.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(generator.next_u64(), 3_203_168_211_198_807_973);
        assert_eq!(generator.next_u64(), 9_817_491_932_198_370_423);
        assert_eq!(fmix64(0), 0);
        assert_eq!(fmix64(1), 0xb456_bcfc_34c2_cb2c);
    }
}
