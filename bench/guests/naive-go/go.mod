module naive

go 1.24
