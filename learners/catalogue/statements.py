"""What the papers say about privacy, in their own words: what a case of the catalogue audits.

Quotations are the papers' words. Where the text that we have has lost a formula, ours stands in square brackets.
"""

from __future__ import annotations

from ...mechanisms.statement import Statement

_AGARWAL_SINGH = "Agarwal & Singh 2017"
_SMITH_THAKURTA = "Smith & Thakurta 2013"
_ASI_RAMAN_TALWAR = "Asi, Raman & Talwar 2025"
_ENE_NGUYEN_VLADU = "Ene, Nguyen & Vladu 2021"

# The page of findings has each sentence of an answer once.
_ONE_SIDED = (
    "The noise suffices where a replaced loss moves by no more than it pays for, as for Y = [0, 1]^N, and where a "
    "loss becomes 0: the introduction speaks of data “present as opposed to when it is absent in a dataset”. Twice "
    "the noise changes no rate."
)
_FED = "For Lemma 4.2 that set means losses of arms."
_LARGE = "Section 4 assumes “sufficiently large” T and N; the factor depends on neither."
_NO_CEILING = "log T is rounded up in Algorithm 2."
_DIAMETER = "Scale the noise to the L1 diameter of Y, at most 2‖Y‖_1."
_TWICE_B = "λ = 2B/ε, or B/ε for losses whose differences are at most B."
_OWN_LAW = "Take σ from the exact law of Gaussian noise, for"
_CONSTANT = "A constant: with noise for"
_LEFT_OUT = "as when a cost function is left out: the introduction speaks of its “presence or absence in F”."

AS_THEOREM_3_1 = Statement(
    source=f"{_AGARWAL_SINGH}, Theorem 3.1",
    text=(
        "Moreover, the algorithm is ε-differentially private, i.e. the sequence of predictions produced "
        "(x_t : t ∈ [T]) is ε-differentially private."
    ),
    where="Theorem 3.1, last sentence (Section 3)",
    false=(
        "Definition 2.1 replaces a loss by another: a node moves by up to 2‖Y‖_1, with noise for ‖Y‖_1. That is "
        "up to 2ε."
    ),
    answer=f"{_ONE_SIDED} {_NO_CEILING}",
    repair=_DIAMETER,
)
AS_LEMMA_3_3 = Statement(
    source=f"{_AGARWAL_SINGH}, Lemma 3.3",
    text="The sequence (L~_t : t ∈ [T]) is ε-differentially private.",
    where="Lemma 3.3, first claim (Section 3.1)",
    false=(
        "A node moves by up to 2‖Y‖_1, with noise for ‖Y‖_1: that alone is 2ε. At T a power of two the last sum "
        "L~_T adds the root to the log T nodes paid for."
    ),
    answer=(
        "No decision uses L~_T, and Jain et al.'s strings may never use a root. Without it 2ε are left on symmetric "
        "sets; for Y = [0, 1]^N, or where a loss becomes 0, the claim then holds with log T rounded up."
    ),
    repair="Scale the noise to the L1 diameter of Y times ⌊log T⌋ + 1 nodes; without L~_T, times ⌈log T⌉.",
)
AS_PROOF_3_3 = Statement(
    source=f"{_AGARWAL_SINGH}, proof of Lemma 3.3",
    text=(
        "By Theorem 9 ((Jain et al., 2012)), we have that the sequence (L~'_t : t ∈ [T]) is ε-differentially private."
    ),
    where="proof of Lemma 3.3, first sentence (Section 3.1)",
    false="Already without its last member the sequence has 2ε where a loss is replaced by its negative.",
    answer=f"{_ONE_SIDED} {_NO_CEILING} That is for t < T, as far as decisions use the sums.",
    repair=_DIAMETER,
)
AS_THEOREM_3_5 = Statement(
    source=f"{_AGARWAL_SINGH}, Theorem 3.5",
    text="Moreover the algorithm is ε-differentially private.",
    where="Theorem 3.5, last sentence (Section 3.2)",
    false=(
        "No δ is in the claim, and σ may be built from any. With δ = 0.5, claiming ε = 0.5, two rounds of decisions "
        "have 0.807 in base 2, 1.142 in base e and 0.743 in base 10; claiming ε = 1, 1.385, 1.142 and 0.743. As "
        "(ε, δ) it is false too: σ has √N where Theorem A.1 has ‖Y‖_2. For Y = [-100, 100]^2 and δ = 1e-5 two rounds "
        "of decisions have 1.385 in base 2, 1.142 in base e and 0.743 in base 10, for claims of 0.5 and of 1."
    ),
    answer=(
        "That ε is a slip for (ε, δ), and √N for ‖Y‖_2, which it is for Y = [-1, 1]^N: σ depends on δ, and Theorem "
        "A.1, on which the proof rests, has both."
    ),
    repair="Claim (ε, δ), with σ for the L2 diameter of Y and all nodes that a loss reaches.",
)
AS_THEOREM_A_1 = Statement(
    source=f"{_AGARWAL_SINGH}, Theorem A.1",
    text="The sequence (L~_t : t ∈ [T]) is (ε, δ)-differentially private.",
    where="Theorem A.1, first claim (Appendix A)",
    false=(
        "The least σ falls like 1/ε, as Gaussian noise must not for large ε. At ε = 3, δ = 0.1 and T = 2 the "
        "sequence has 5.740 in base 2, which makes σ largest; without the root of the tree 3.209. At ε = 15 it has "
        "15.109 even without the root and where a loss becomes 0."
    ),
    answer=(
        "A small ε, at most 1, is understood, as is usual for Gaussian noise: up to ε = 1 and δ = 0.1 we find no "
        "violation in base 2. Where a loss becomes 0 it holds at ε = 3 too."
    ),
    repair=f"{_OWN_LAW} the L2 diameter of Y and all nodes that a loss reaches.",
)
AS_PROOF_A_1 = Statement(
    source=f"{_AGARWAL_SINGH}, proof of Theorem A.1",
    text=(
        "By Theorem 9 ((Jain et al., 2012)), we have that the sequence (L~'_t : t ∈ [T]) is (ε, δ)-differentially "
        "private."
    ),
    where="proof of Theorem A.1, first sentence (Appendix A)",
)
AS_LEMMA_4_2 = Statement(
    source=f"{_AGARWAL_SINGH}, Lemma 4.2",
    text=(
        "For D = Lap^N(λ) where λ = B/ε, the sequence of outputs (x~_t : t ∈ [T]) produced by the Algorithm A'(A, D) "
        "is ε-differentially private."
    ),
    where="Lemma 4.2, last sentence (Section 4)",
    false=(
        "What the inner algorithm is fed moves by up to 2B, with noise for B. Where its actions show what it is fed "
        "they have 2ε."
    ),
    answer=f"{_ONE_SIDED} {_FED} {_LARGE}",
    repair=_TWICE_B,
)
AS_PROOF_4_2 = Statement(
    source=f"{_AGARWAL_SINGH}, proof of Lemma 4.2",
    text="P(⟨l_t0 + Z_t0, x~_t0⟩ ∈ I) ≤ e^ε P(⟨l'_t0 + Z_t0, x~_t0⟩ ∈ I)",
    where="proof of Lemma 4.2, the displayed claim (Section 4)",
    false="The two values differ by up to 2B, the noise has scale B/ε: the ratio reaches e^(2ε).",
    answer=AS_LEMMA_4_2.answer,
    repair=_TWICE_B,
)
AS_THEOREM_4_1 = Statement(
    source=f"{_AGARWAL_SINGH}, Theorem 4.1",
    text="Moreover, Algorithm 4 is ε-differentially private",
    where="Theorem 4.1, last sentence (Section 4)",
    false=(
        "It rests on Lemma 4.2. With its own η and γ, two arms and ε = 1 a path of actions has 0.631, 0.823 and 1.047 "
        "at T = 8, 12 and 20. Its probability is 3e-8 at T = 20: computed, too rare to be seen."
    ),
    answer=AS_LEMMA_4_2.answer,
    repair="λ = 2/ε.",
)
AS_THEOREM_4_5 = Statement(
    source=f"{_AGARWAL_SINGH}, Theorem 4.5",
    text="Moreover the algorithm is ε-differentially private.",
    where="Theorem 4.5, last sentence (Section 4.2)",
    false=(
        "It rests on Lemma 4.2: the loss that SCRiBLe's next point depends on moves by up to 2‖Y‖_1, with noise for "
        "‖Y‖_1."
    ),
    answer=f"{_ONE_SIDED} {_LARGE}",
    repair="λ = 2‖Y‖_1/ε.",
)

ST_THEOREM_3 = Statement(
    source=f"{_SMITH_THAKURTA}, Theorem 3",
    text="Algorithm 1 is ε-differentially private.",
    where="Theorem 3 (Section 2.1.1)",
    false=(
        "A replaced cost function moves a gradient by up to 2L, with noise for L. Outputs depend on m = ⌈log2 T⌉ of "
        "the m+1 nodes paid for: up to 2m/(m+1) ε."
    ),
    answer=(
        f"{_CONSTANT} 2L it holds, and no rate changes. As printed it holds where neighbours' gradients differ by at "
        f"most L, {_LEFT_OUT}"
    ),
    repair="Noise of a node for 2L in place of L; m nodes in place of m+1 then suffice.",
)
ST_PROOF_3 = Statement(
    source=f"{_SMITH_THAKURTA}, proof of Theorem 3",
    text=(
        "By the amount of noise added to each node of the tree, each of the ratio in the product of (11) is bounded "
        "by e^(ε / (⌈log2 T⌉ + 1))."
    ),
    where="proof of Theorem 3, below equation (11) (Appendix B.1)",
    false=(
        "The proof bounds a gradient by L, but a ratio needs the difference of two: it reaches "
        "e^(2ε/(⌈log2 T⌉ + 1)), and the product e^(2ε). The proof of Theorem 5 is “exactly the same”."
    ),
    answer=(
        f"{_CONSTANT} 2L the step holds, as does the printed one where neighbours' gradients differ by at most L."
    ),
    repair="Noise of a node for 2L in place of L.",
)
ST_NODES = Statement(
    source=f"{_SMITH_THAKURTA}, Section 2.1",
    text=(
        "Since each zt only affects log2T nodes in the tree, by the composition property [DMNS06], the complete tree "
        "will be ε-differentially private."
    ),
    where="Section 2.1, Tree-based Aggregation",
    false=(
        "A leaf affects log2 T + 1 nodes: itself, the root and those between. Where each node is "
        "(ε/log2 T)-private, as the sentence before says, the tree has (1 + 1/log2 T) ε, under any relation of "
        "neighbours."
    ),
    answer=(
        "Algorithm 2 pays for ⌈log2 T⌉ + 1 nodes, and the proof of Theorem 3 counts them so. No output of Algorithm 1 "
        "uses the root."
    ),
    repair="Nodes that are (ε/(log2 T + 1))-private.",
)
ST_THEOREM_5 = Statement(
    source=f"{_SMITH_THAKURTA}, Theorem 5",
    text=("The bandit version of Private Follow The Approximate Leader (Algorithm 3) is ε-differentially private."),
    where="Theorem 5 (Section 3.2)",
    false=("A replaced cost function moves a gradient estimate by up to 2pB/β, with noise for pB/β."),
    answer=(
        f"{_CONSTANT} 2pB/β it holds, and no rate changes. As printed it holds for costs of one sign, and where a "
        "cost function is left out."
    ),
    repair="Noise of a node for 2pB/β in place of pB/β.",
)

ART_THEOREM_1 = Statement(
    source=f"{_ASI_RAMAN_TALWAR}, Theorem 1",
    text=(
        "Let [B] be any bandit algorithm. Then, for every [τ] and [ε], there exists an [ε]-differentially private "
        "bandit algorithm"
    ),
    where="Theorem 1, first half (Section 3)",
)
ART_COROLLARY_2 = Statement(
    source=f"{_ASI_RAMAN_TALWAR}, Corollary 2",
    text=(
        "if [B] is HTINF with [its parameters], then Algorithm 1, when run with [B] and [τ], is [ε]-differentially "
        "private"
    ),
    where="Corollary 2 (Section 3)",
)
ART_LEMMA_3 = Statement(
    source=f"{_ASI_RAMAN_TALWAR}, Lemma 3",
    text=("For every bandit algorithm [B], batch size [τ], and [ε], Algorithm 1 is [ε]-differentially private."),
    where="Lemma 3 (Section 3.1)",
)
ART_PROOF_3 = Statement(
    source=f"{_ASI_RAMAN_TALWAR}, proof of Lemma 3",
    text=(
        "Thus, by Definition 7 and post-processing, we have that [the two mechanisms] are [ε]-indistinguishable for "
        "all inputs."
    ),
    where="proof of Lemma 3 (Appendix C.1)",
)
ART_THEOREM_7 = Statement(
    source=f"{_ASI_RAMAN_TALWAR}, Theorem 7",
    text=(
        "Let [B] be any bandit algorithm. Then, for every [τ] and [ε], there exists an [ε]-differentially private "
        "bandit with expert advice algorithm"
    ),
    where="Theorem 7, first half (Section 4)",
)
ART_COROLLARY_8 = Statement(
    source=f"{_ASI_RAMAN_TALWAR}, Corollary 8",
    text=(
        "if [B] is HTINF with [its parameters], then Theorem 7 guarantees the existence of an [ε]-differentially "
        "private algorithm"
    ),
    where="Corollary 8 (Section 4)",
)

ENE_THEOREM_4 = Statement(
    source=f"{_ENE_NGUYEN_VLADU}, Theorem 4",
    text=("when P is coordinate-wise Lap(0, λ), the sequence {L^_t}_{t=1..T} is (ε, 0)-differentially private"),
    where="Theorem 4, first item (Preliminaries, Tree Based Aggregation)",
    false=(
        "At T a power of two a vector reaches log T + 1 nodes, the root among them, and λ pays for log T. A replaced "
        "vector moves each by up to 2Y_1: 3ε at T = 4, and 2ε without the root."
    ),
    answer=(
        "The theorem quotes earlier work and says that there is such an algorithm; audited is TREEBASEDAGG, which it "
        "names. PRIVATEBANDIT uses no last sum. Without the root the noise suffices where a vector becomes 0: the "
        "preliminaries speak of “whether ft appears or not”."
    ),
    repair="λ with log T + 1 in place of log T, and the L1 diameter in place of Y_1.",
)
ENE_THEOREM_4_GAUSSIAN = Statement(
    source=ENE_THEOREM_4.source,
    text="when P is coordinate-wise N(0, σ^2), the sequence {L^_t}_{t=1..T} is (ε, δ)-differentially private",
    where="Theorem 4, second item (Preliminaries, Tree Based Aggregation)",
    false="The least σ falls like 1/ε, with the figures of Theorem A.1 of Agarwal & Singh.",
    answer=(
        "A small ε, at most 1, is understood, as is usual for Gaussian noise: up to ε = 1 and δ = 0.1 we find no "
        "violation in base 2."
    ),
    repair=f"{_OWN_LAW} the L2 diameter in place of Y_2 and all nodes of a vector.",
)
ENE_LEMMA_7 = Statement(
    source=f"{_ENE_NGUYEN_VLADU}, Lemma 7",
    text="The algorithm PRIVATEBANDIT(T, P) is (ε, 0)-differentially private.",
    where="Lemma 7 (Privacy Analysis)",
)
ENE_PROOF_7 = Statement(
    source=f"{_ENE_NGUYEN_VLADU}, proof of Lemma 7",
    text="releasing T_round = T^{1/2} such partial sums causes a loss of privacy of at most ε",
    where="proof of Lemma 7 (Privacy Analysis)",
)
