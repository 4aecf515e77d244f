module github.com/plumbline/plumbline/internal/release

go 1.26.0

require (
	github.com/CycloneDX/cyclonedx-go v0.9.2
	github.com/cpuguy83/go-md2man/v2 v2.0.6
	golang.org/x/mod v0.36.0
)

require github.com/russross/blackfriday/v2 v2.1.0 // indirect
