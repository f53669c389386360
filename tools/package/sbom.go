package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes which modules are inside the programs of a release, as
// CycloneDX in JSON. It has no serial number: two builds are the same bytes.
func writeSBOM(w io.Writer, programs []string) error {
	date, err := sourceDate()
	if err != nil {
		return err
	}
	list, goVersion, err := modules(programs)
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: date.Format("2006-01-02T15:04:05Z"),
		Component: &cdx.Component{
			BOMRef: "ttmon", Type: cdx.ComponentTypeApplication, Name: "ttmon", Version: os.Getenv("VERSION"),
			Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		},
	}
	components := []cdx.Component{{
		BOMRef: "pkg:golang/stdlib@" + strings.TrimPrefix(goVersion, "go"), Type: cdx.ComponentTypeLibrary, Name: "stdlib",
		Version: strings.TrimPrefix(goVersion, "go"), PackageURL: "pkg:golang/stdlib@" + strings.TrimPrefix(goVersion, "go"),
	}}
	for _, m := range list {
		components = append(components, m.component())
	}
	var refs []string
	dependencies := []cdx.Dependency{}
	for _, program := range programs {
		c, needs, err := programComponent(program)
		if err != nil {
			return err
		}
		components = append(components, c)
		refs = append(refs, c.BOMRef)
		dependencies = append(dependencies, cdx.Dependency{Ref: c.BOMRef, Dependencies: &needs})
	}
	dependencies = append([]cdx.Dependency{{Ref: "ttmon", Dependencies: &refs}}, dependencies...)
	bom.Components, bom.Dependencies = &components, &dependencies
	e := cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON)
	return e.SetPretty(true).Encode(bom)
}

func (m module) purl() string { return "pkg:golang/" + m.Path + "@" + m.Version }

func (m module) component() cdx.Component {
	c := cdx.Component{BOMRef: m.purl(), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: m.purl()}
	// The sum of a module (h1) is a SHA-256 over the sums of its files.
	if b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(b) == sha256.Size {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(b)}}
	}
	return c
}

// programComponent is a program, with the refs of what is inside it.
func programComponent(path string) (c cdx.Component, needs []string, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return c, nil, err
	}
	list, _, err := modules([]string{path})
	if err != nil {
		return c, nil, err
	}
	for _, m := range list {
		needs = append(needs, m.purl())
	}
	sum := sha256.Sum256(b)
	name := filepath.Base(path)
	return cdx.Component{
		BOMRef: name, Type: cdx.ComponentTypeApplication, Name: name, Version: os.Getenv("VERSION"),
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}, needs, nil
}
