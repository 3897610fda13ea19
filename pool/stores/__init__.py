"""Where the pool's knowledge is kept: the implementations of pool.ports.Store."""
