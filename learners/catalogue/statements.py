"""What the papers say about privacy, in their own words: what a case of the catalogue audits.

Quotations are the papers' words. Where the text that we have has lost a formula, ours stands in square brackets.
"""

from __future__ import annotations

from ...mechanisms.statement import Statement

#: Whose claim a case is. `theorem`: a numbered statement of the paper, in its own parameters, loss set, neighbours and
#: output. `proof`: a quantity that a proof calls private, though the algorithm does not output it. `reading`: it
#: depends on how the paper is read, where a formula, a base or a constant is open. `variant`: the paper's algorithm
#: outside its assumptions, or under another relation of neighbours. `control`: nobody's claim.
STANDINGS = ("theorem", "proof", "reading", "variant", "control")
#: The standings of what is printed in a paper.
PUBLISHED = ("theorem", "proof")


_AGARWAL_SINGH = "Agarwal & Singh 2017"
_SMITH_THAKURTA = "Smith & Thakurta 2013"
_ASI_RAMAN_TALWAR = "Asi, Raman & Talwar 2025"
_ENE_NGUYEN_VLADU = "Ene, Nguyen & Vladu 2021"

_WEAKER = "and where the round's loss becomes 0 instead of another one. Twice the noise changes no rate."
_ONE_SIDED = f"it holds where a replaced loss moves by no more than ‖Y‖_1 in L1 norm, as for Y = [0, 1]^N, {_WEAKER}"
_PRINTED = f"As printed {_ONE_SIDED}"
_ROUNDED = f"With log T rounded up, as Algorithm 2 has it, {_ONE_SIDED}"
_FED = (
    "As printed it holds where what the inner algorithm is fed moves by no more than B ‖x~_t‖_∞, as for arms with "
    f"losses in [0, 1], {_WEAKER}"
)
_LARGE = "Section 4 assumes T and N sufficiently large for ease of exposition; the factor depends on neither."

AS_THEOREM_3_1 = Statement(
    source=f"{_AGARWAL_SINGH}, Theorem 3.1",
    text=(
        "Moreover, the algorithm is ε-differentially private, i.e. the sequence of predictions produced "
        "(x_t : t ∈ [T]) is ε-differentially private."
    ),
    where="Theorem 3.1, last sentence (Section 3)",
    false=(
        "The noise of a node is scaled to ‖Y‖_1, the size of one loss, but Definition 2.1 replaces a loss by another: "
        "a node moves by up to 2 ‖Y‖_1, and the predictions have up to 2 ε."
    ),
    answer=_ROUNDED,
    repair="Noise scaled to the L1 diameter of Y, at most 2 ‖Y‖_1, in place of ‖Y‖_1.",
)
AS_LEMMA_3_3 = Statement(
    source=f"{_AGARWAL_SINGH}, Lemma 3.3",
    text="The sequence (L~_t : t ∈ [T]) is ε-differentially private.",
    where="Lemma 3.3, first claim (Section 3.1)",
    false=(
        "The sequence holds L~_T too. At T a power of two that is the root of the tree, so a loss reaches log T + 1 "
        "noisy nodes, while the noise pays for log T of them; and a replaced loss moves each by up to 2 ‖Y‖_1."
    ),
    answer=(
        "No decision uses L~_T: for the prefix sums that decisions use, t < T, and Y = [0, 1]^N, the lemma's noise "
        "suffices with log T rounded up, so the theorem needs less than the lemma says."
    ),
    repair="Noise scaled to (log T + 1) times the L1 diameter of Y; or the lemma for t < T and the diameter of Y.",
)
AS_PROOF_3_3 = Statement(
    source=f"{_AGARWAL_SINGH}, proof of Lemma 3.3",
    text=(
        "By Theorem 9 ((Jain et al., 2012)), we have that the sequence (L~'_t : t ∈ [T]) is ε-differentially private."
    ),
    where="proof of Lemma 3.3, first sentence (Section 3.1)",
    false=(
        "Already without its last member the sequence has 2 ε where losses may be replaced by their negatives: the "
        "noise is scaled to ‖Y‖_1, and a node moves by up to 2 ‖Y‖_1."
    ),
    answer=f"As far as decisions use it, t < T, and with log T rounded up, {_ONE_SIDED}",
    repair="Noise scaled to the L1 diameter of Y, at most 2 ‖Y‖_1, in place of ‖Y‖_1.",
)
AS_THEOREM_3_5 = Statement(
    source=f"{_AGARWAL_SINGH}, Theorem 3.5",
    text="Moreover the algorithm is ε-differentially private.",
    where="Theorem 3.5, last sentence (Section 3.2)",
    false=(
        "δ is a free parameter of σ, and no δ is in the claim: with δ = 1/2 two rounds of decisions tell the worlds "
        "apart by more than ε = 1 allows. For small δ it is false at long horizons: computed, too rare to be seen."
    ),
    answer=("That ε is a slip for (ε, δ): σ depends on δ, and Theorem A.1, on which the proof rests, says (ε, δ)."),
    repair="Claim (ε, δ), with σ for the L2 diameter of Y and for all nodes that a loss reaches.",
)
AS_THEOREM_A_1 = Statement(
    source=f"{_AGARWAL_SINGH}, Theorem A.1",
    text="The sequence (L~_t : t ∈ [T]) is (ε, δ)-differentially private.",
    where="Theorem A.1, first claim (Appendix A)",
    false=(
        "The least σ falls like 1 / ε, and Gaussian noise must not for large ε: at ε = 2, δ = 0.1 and T = 2 the "
        "sequence has a larger ε with σ read with logarithms of base 2, the largest of the readings that we know."
    ),
    answer=(
        "A small ε, at most 1, is understood, as is usual for the Gaussian mechanism: for ε up to 1 and δ up to 0.1, "
        "with logarithms of base 2, we find no violation."
    ),
    repair="σ from the exact law of Gaussian noise, for the L2 diameter of Y and all nodes that a loss reaches.",
)
AS_PROOF_A_1 = Statement(
    source=f"{_AGARWAL_SINGH}, proof of Theorem A.1",
    text=(
        "By Theorem 9 ((Jain et al., 2012)), we have that the sequence (L~'_t : t ∈ [T]) is (ε, δ)-differentially "
        "private."
    ),
    where="proof of Theorem A.1, first sentence (Appendix A)",
)
AS_THEOREM_4_1 = Statement(
    source=f"{_AGARWAL_SINGH}, Theorem 4.1",
    text="Moreover, Algorithm 4 is ε-differentially private",
    where="Theorem 4.1, last sentence (Section 4)",
)
AS_LEMMA_4_2 = Statement(
    source=f"{_AGARWAL_SINGH}, Lemma 4.2",
    text=(
        "For D = Lap^N(λ) where λ = B/ε, the sequence of outputs (x~_t : t ∈ [T]) produced by the Algorithm A'(A, D) "
        "is ε-differentially private."
    ),
    where="Lemma 4.2, last sentence (Section 4)",
    false=(
        "The noise is scaled to B, the size of one loss, but Definition 2.1 replaces a loss by another: what the "
        "inner algorithm is fed moves by up to 2 B, and an inner algorithm that shows it has 2 ε."
    ),
    answer=f"{_FED} {_LARGE}",
    repair="λ = 2 B / ε, or B / ε for losses whose differences are at most B.",
)
AS_PROOF_4_2 = Statement(
    source=f"{_AGARWAL_SINGH}, proof of Lemma 4.2",
    text="P(⟨l_t0 + Z_t0, x~_t0⟩ ∈ I) ≤ e^ε P(⟨l'_t0 + Z_t0, x~_t0⟩ ∈ I)",
    where="proof of Lemma 4.2, the displayed claim (Section 4)",
    false="The two values differ by up to 2 B, the noise has scale B / ε: the ratio reaches e^(2 ε).",
    answer=f"{_FED} {_LARGE}",
    repair="λ = 2 B / ε, or B / ε for losses whose differences are at most B.",
)
AS_THEOREM_4_5 = Statement(
    source=f"{_AGARWAL_SINGH}, Theorem 4.5",
    text="Moreover the algorithm is ε-differentially private.",
    where="Theorem 4.5, last sentence (Section 4.2)",
    false=(
        "It rests on Lemma 4.2. SCRiBLe's next point tells the noisy loss that it was fed, whatever its step "
        "parameter, and that loss moves by up to 2 ‖Y‖_1 where the noise has scale ‖Y‖_1 / ε."
    ),
    answer=f"{_PRINTED} {_LARGE}",
    repair="λ = 2 ‖Y‖_1 / ε.",
)

ST_THEOREM_3 = Statement(
    source=f"{_SMITH_THAKURTA}, Theorem 3",
    text="Algorithm 1 is ε-differentially private.",
    where="Theorem 3 (Section 2.1.1)",
    false=(
        "A node's noise is scaled to L, the size of one gradient, but a replaced cost function moves a gradient by up "
        "to 2 L: with m = ⌈log2 T⌉ nodes that outputs depend on, of m + 1 paid for, that is 2 m / (m + 1) ε."
    ),
    answer=(
        "It is a constant: with noise for 2 L the theorem holds and no rate changes, and as printed it holds where "
        "the gradients of neighbours differ by at most L, as when a cost function is left out."
    ),
    repair="Noise of a node for 2 L in place of L; m nodes in place of m + 1 then suffice.",
)
ST_PROOF_3 = Statement(
    source=f"{_SMITH_THAKURTA}, proof of Theorem 3",
    text=(
        "By the amount of noise added to each node of the tree, each of the ratio in the product of (11) is bounded "
        "by e^(ε / (⌈log2 T⌉ + 1))."
    ),
    where="proof of Theorem 3, below equation (11) (Appendix B.1)",
    false=(
        "The proof bounds the norm of a gradient by L, but the ratio needs the difference of two: it reaches "
        "e^(2 ε / (⌈log2 T⌉ + 1))."
    ),
    answer=(
        "It is a constant: with noise for 2 L the step holds, and as printed it holds where the gradients of "
        "neighbours differ by at most L."
    ),
    repair="Noise of a node for 2 L in place of L.",
)
ST_PARTIAL_SUMS = Statement(
    source=f"{_SMITH_THAKURTA}, Section 2.1, tree-based aggregation",
    text="and the whole sequence v1, · · · , vT is ε-differentially private",
    where="Section 2.1, the sentence that introduces tree-based aggregation",
    false=(
        "The whole sequence holds the root too: a vector reaches all ⌈log2 T⌉ + 1 nodes that are paid for, each "
        "of which moves by up to 2 L'. That is 2 ε."
    ),
    answer=(
        "It is a constant, and Section 2.1 has the noise as O(...): Algorithm 2, whose noise is audited, fixes it. "
        "The sum is 2 ε for replaced vectors and ε for left out ones, and no output of Algorithm 1 uses the last sum."
    ),
    repair="Noise of a node for 2 L' in place of L'.",
)
ST_THEOREM_5 = Statement(
    source=f"{_SMITH_THAKURTA}, Theorem 5",
    text=("The bandit version of Private Follow The Approximate Leader (Algorithm 3) is ε-differentially private."),
    where="Theorem 5 (Section 3.2)",
    false=(
        "Its noise is scaled to p B / β, the size of one gradient estimate, but a replaced cost function moves an "
        "estimate by up to 2 p B / β."
    ),
    answer=(
        "It is a constant: with noise for 2 p B / β the theorem holds and no rate changes, and as printed it holds "
        "for costs of one sign."
    ),
    repair="Noise of a node for 2 p B / β in place of p B / β.",
)
ST_PROOF_5 = Statement(
    source=f"{_SMITH_THAKURTA}, proof of Theorem 5",
    text="The proof of Theorem 5 is exactly the same as of Theorem 3, and hence we omit the details.",
    where="below Theorem 5 (Section 3.2)",
    false="The step of the proof of Theorem 3 that is false there is false here: estimates differ by up to 2 p B / β.",
    answer="It is a constant: with noise for 2 p B / β the step holds, and as printed it holds for costs of one sign.",
    repair="Noise of a node for 2 p B / β in place of p B / β.",
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

ENE_THEOREM_4 = Statement(
    source=f"{_ENE_NGUYEN_VLADU}, Theorem 4",
    text=("when P is coordinate-wise Lap(0, λ), the sequence {L^_t}_{t=1..T} is (ε, 0)-differentially private"),
    where="Theorem 4, first item (Preliminaries, Tree Based Aggregation)",
    false=(
        "At T a power of two a vector reaches log T + 1 noisy nodes, the root among them, while λ pays for log T of "
        "them: twice ε at T = 2 even where the vector becomes 0."
    ),
    answer=(
        "The theorem is quoted from earlier work, and says that there is such an algorithm: what is audited is the "
        "one that it names, TREEBASEDAGG. No decision of PRIVATEBANDIT uses the last sum, and Lemma 7, which is "
        "about decisions, does not need it."
    ),
    repair="λ with log T + 1 in place of log T, and the L1 diameter in place of Y_1.",
)
ENE_THEOREM_4_GAUSSIAN = Statement(
    source=ENE_THEOREM_4.source,
    text="when P is coordinate-wise N(0, σ^2), the sequence {L^_t}_{t=1..T} is (ε, δ)-differentially private",
    where="Theorem 4, second item (Preliminaries, Tree Based Aggregation)",
    false=(
        "The least σ falls like 1 / ε, as in Theorem A.1 of Agarwal & Singh, and Gaussian noise must not for large ε: "
        "at ε = 2, δ = 0.1 and T = 2 the sequence has a larger ε with logarithms of base 2, which make σ largest."
    ),
    answer=(
        "The theorem is quoted from earlier work, and a small ε, at most 1, is understood: for ε up to 1 and δ up to "
        "0.1, with logarithms of base 2, we find no violation."
    ),
    repair="σ from the exact law of Gaussian noise, for the L2 diameter in place of Y_2 and all nodes of a vector.",
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
