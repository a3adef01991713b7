"""The pipeline of one tenant (gather, calculate, record) and the engine that runs it for many."""
