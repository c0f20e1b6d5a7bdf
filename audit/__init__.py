"""The audit room: claims, pairs, attacks, events and the bounds that counts certify."""
