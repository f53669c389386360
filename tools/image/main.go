// Image writes the container image of a release, for all its architectures, as an
// OCI archive: from scratch, without a container daemon, the same bytes from every
// build. tools/package/build calls it:
//
//	image --version V --output FILE amd64=DIR arm64=DIR
//
// Each DIR holds what goes into that architecture's image, as it is.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	version := flag.String("version", "", "the release")
	output := flag.String("output", "", "the archive to write")
	flag.Parse()
	if err := run(*version, *output, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(version, output string, trees []string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	date := time.Unix(seconds, 0).UTC()
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, tree := range trees {
		arch, dir, ok := strings.Cut(tree, "=")
		if !ok {
			return fmt.Errorf("%q: it wants ARCH=DIR", tree)
		}
		image, err := makeImage(version, arch, dir, date)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	// One image of that name, for several platforms.
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add:        index,
		Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": "ttmon:" + tag(version)}},
	})
	return writeArchive(named, output, date)
}

// tag is a version as registries take it: they know no "+".
func tag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// makeImage is one architecture's image: one layer, and how it is run.
func makeImage(version, arch, dir string, date time.Time) (v1.Image, error) {
	b, err := layerOf(dir, date)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: date}, CreatedBy: "tools/image"}})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, configOf(image, version, arch, date))
}

func configOf(image v1.Image, version, arch string, date time.Time) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic("BUG: an image that was just made has no configuration: " + err.Error())
	}
	c = c.DeepCopy()
	c.Architecture, c.OS, c.Created = arch, "linux", v1.Time{Time: date}
	c.Config = v1.Config{
		Env:          []string{"PATH=/usr/bin"},
		Entrypoint:   []string{"/usr/bin/ttmond"},
		Cmd:          []string{"--root", "/host"},
		ExposedPorts: map[string]struct{}{"9108/tcp": {}},
		WorkingDir:   "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "ttmon",
			"org.opencontainers.image.description": "Monitors Tenstorrent boards: health, and who holds their memory",
			"org.opencontainers.image.version":     version,
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.source":      "https://github.com/ttmon/ttmon",
		},
	}
	return c
}

// layerOf is a directory as a tar archive, owned by root.
func layerOf(dir string, date time.Time) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return addFile(w, path, name, info, date)
	})
	if err == nil {
		err = w.Close()
	}
	return buf.Bytes(), err
}

func addFile(w *tar.Writer, path, name string, info fs.FileInfo, date time.Time) error {
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: date, Format: tar.FormatPAX}
	if info.Mode()&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return w.WriteHeader(h)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a directory", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, int64(len(b))
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// writeArchive writes an image layout as one file.
func writeArchive(index v1.ImageIndex, output string, date time.Time) error {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	b, err := layerOf(dir, date)
	if err != nil {
		return err
	}
	return os.WriteFile(output, b, 0o644)
}
