"""Black-box audits of mechanisms: search inputs, choose an attack on outputs, shrink what is falsified."""
