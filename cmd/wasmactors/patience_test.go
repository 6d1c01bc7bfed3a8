package main

import "time"

// patience is how long a test waits for what must come.
const patience = 60 * time.Second
