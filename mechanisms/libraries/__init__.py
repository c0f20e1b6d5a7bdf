"""Other people's code: each public mechanism, tool and model with the claim that its library makes of it."""
