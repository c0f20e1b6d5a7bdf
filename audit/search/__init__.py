"""Search: how candidates for an audit are proposed and compared, on runs that never certify."""
