// Package packages tests what is released, as users get it: the .deb packages are
// installed, upgraded under load, removed and purged on a bare Debian 12 with a
// real systemd, the .rpm packages are compared with them, the archives are
// unpacked by install.sh. Its tests are behind the build tag packages (make
// test-package): they build everything from scratch, which takes minutes.
package packages
