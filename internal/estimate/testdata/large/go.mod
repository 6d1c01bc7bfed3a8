module large

go 1.23
