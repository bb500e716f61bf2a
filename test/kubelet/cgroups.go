package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

const cgroupRoot = "/sys/fs/cgroup"

// absentPodCgroups returns the cgroups of pods that are not there yet, in every
// hierarchy: a kubelet makes them and leaves them. Those that are there may be
// another kubelet's.
func absentPodCgroups() ([]string, error) {
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	places := []string{cgroupRoot} // of the one hierarchy of cgroup v2
	for _, entry := range entries {
		if entry.IsDir() {
			places = append(places, filepath.Join(cgroupRoot, entry.Name()))
		}
	}
	var absent []string
	for _, place := range places {
		path := filepath.Join(place, "kubepods")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			absent = append(absent, path)
		}
	}
	return absent, nil
}

// removePodCgroups removes cgroups and those in them, as far as they are there.
func removePodCgroups(cgroups []string) error {
	var errs []error
	for _, top := range cgroups {
		var folders []string
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				folders = append(folders, path)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, folder := range slices.Backward(folders) { // the inner ones first
			if err := syscall.Rmdir(folder); err != nil {
				errs = append(errs, fmt.Errorf("remove cgroup %s: %w", folder, err))
			}
		}
	}
	return errors.Join(errs...)
}
