package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"time"
)

// file is one file of an archive. It belongs to root and has the time of the commit.
type file struct {
	name    string
	mode    int64
	content []byte
}

func tarball(files []file, created time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: created, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func zipped(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b) // without a name and a time
	_, err := w.Write(content)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

func tarGz(files []file, created time.Time) ([]byte, error) {
	plain, err := tarball(files, created)
	if err != nil {
		return nil, err
	}
	return zipped(plain)
}

func zipFile(files []file, created time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		part, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: created})
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// untarGz returns the files of an archive in its order.
func untarGz(content []byte) ([]file, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	var files []file
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files = append(files, file{header.Name, 0o644, content})
	}
}
