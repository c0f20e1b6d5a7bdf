"""Assumptions of an audit, tested: independent runs, declared laws that are those played, the learner's protocol."""
