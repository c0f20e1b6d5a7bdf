"""Black-box audits of mechanisms, and of learners on sequences of rounds: search inputs, attack outputs, shrink."""
