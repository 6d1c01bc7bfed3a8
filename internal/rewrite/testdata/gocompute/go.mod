module gocompute

go 1.24
