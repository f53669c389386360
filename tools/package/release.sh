# Sourced by tools/package/build: the archives, what is in them, the image, and repositories.

# A tree to be unpacked below any prefix.
archive() { # ARCH
  local name=ttmon_${version}_linux_$1 stage=$dist/.stage/$1 triplet tree
  case $1 in amd64) triplet=x86_64-linux-gnu ;; arm64) triplet=aarch64-linux-gnu ;; esac
  tree=$dist/.archive/$name
  mkdir -p "$tree"
  cp -a "$stage"/ttmon/usr/. "$stage"/ttmon-sim/usr/. "$stage"/ttmond/usr/. "$stage"/ttmon-server/usr/. "$tree/"
  mkdir -p "$tree/lib" "$tree/share/ttmon/systemd"
  cp -a "$stage/libttmon1/usr/lib/$triplet/." "$stage/libttmon-dev/usr/lib/$triplet/libttmon.so" "$tree/lib/"
  cp -a "$stage/libttmon-dev/usr/include" "$tree/include"
  cp -a "$stage/ttmond/lib/systemd/system/." "$tree/share/ttmon/systemd/"
  cp -a "$stage/ttmon-server/lib/systemd/system/." "$tree/share/ttmon/systemd/"
  cp -a "$stage/ttmond.toml" "$tree/share/ttmon/ttmond.toml"
  cp -a "$stage/ttmon-server.toml" "$tree/share/ttmon/ttmon-server.toml"
  mv "$tree/share/zsh/vendor-completions" "$tree/share/zsh/site-functions"
  rm -rf "$tree/share/lintian" "$tree/share/doc"
  mkdir -p "$tree/share/doc/ttmon"
  cp LICENSE README.md CHANGELOG.md "$tree/share/doc/ttmon/"
  "$helper" licences "$dist/.bin/$1"/* >"$tree/share/doc/ttmon/third-party-licences"
  find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  packed "$name" "$dist/.archive" "$dist/$name.tar.gz"
  VERSION=$version "$helper" sbom "$dist/.bin/$1"/* >"$dist/$name.cdx.json"
}

# The container image: three programs, and where the host and their state go.
image() {
  local arch tree trees=()
  for arch in $arches; do
    tree=$dist/.image/$arch
    put 755 "$dist/.bin/$arch/ttmon" "$tree/usr/bin/ttmon"
    put 755 "$dist/.bin/$arch/ttmond" "$tree/usr/bin/ttmond"
    put 755 "$dist/.bin/$arch/ttmon-server" "$tree/usr/bin/ttmon-server"
    printf 'root:x:0:0:root:/:/usr/sbin/nologin\nttmon:x:65532:65532:ttmon server:/:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n' | put_text "$tree/etc/passwd"
    printf 'root:x:0:\nttmon:x:65532:\nnogroup:x:65534:\n' | put_text "$tree/etc/group"
    put 644 LICENSE "$tree/usr/share/doc/ttmon/LICENSE"
    "$helper" licences "$tree"/usr/bin/* | put_text "$tree/usr/share/doc/ttmon/third-party-licences"
    mkdir -p "$tree/host" "$tree/run/ttmon" "$tree/var/lib/ttmon" "$tree/var/lib/ttmon-server" "$tree/tmp"
    chmod 1777 "$tree/var/lib/ttmon-server"
    chmod 1777 "$tree/tmp"
    trees+=("$arch=$tree")
  done
  (cd tools/image && $go build -trimpath -o "$dist/.image/image" .)
  "$dist/.image/image" --version "$version" --output "$dist/ttmon_${version}_image.oci.tar" "${trees[@]}"
  rm -rf "$dist/.image"
}

# packed NAME DIR FILE: a tree as an archive, the same bytes from every machine.
packed() {
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w --mtime="@$SOURCE_DATE_EPOCH" \
    --format=gnu --directory "$2" "$1" | gzip -9n >"$3"
}

# For Kubernetes, with the tag of the image that was built: the Helm chart, named as
# helm package names it, and the directories for kustomize.
kubernetes() {
  local tree=$dist/.kubernetes name=ttmon_${version}_kubernetes
  mkdir -p "$tree"
  cp -aL packaging/helm/ttmon "$tree/ttmon" # its dashboards are links
  sed -i -E "s/^(version|appVersion): .*/\1: \"$version\"/" "$tree/ttmon/Chart.yaml"
  packed ttmon "$tree" "$dist/ttmon-$version.tgz"
  cp -a packaging/kubernetes "$tree/$name"
  cp -a packaging/grafana "$tree/$name/grafana"
  sed -i -E "s/newTag: .*/newTag: \"${version//+/_}\"/; s#\.\./\.\./grafana#../grafana#" "$tree/$name/base/kustomization.yaml"
  packed "$name" "$tree" "$dist/$name.tar.gz"
  rm -rf "$tree"
}

if [ "$purpose" = image ]; then image; return; fi
for arch in $arches; do say "archive for $arch"; archive "$arch"; done
say "container image, chart"
image
kubernetes
install -m 755 packaging/install.sh "$dist/install.sh"
# What changed in this release: the topmost part of the changelog.
awk '/^## /{ if (n++) exit } n' CHANGELOG.md >"$dist/CHANGES.md"
rm -rf "$dist/.archive"

# Trees that a web server can serve as they are. They are not signed: whoever
# serves them has the key (docs/install/packages.md).
repositories() {
  local deb=$dist/repository/deb rpm=$dist/repository/rpm file
  mkdir -p "$deb" "$rpm"
  touch -d "@$SOURCE_DATE_EPOCH" "$dist"/*.deb "$dist"/*.rpm # createrepo_c writes the files' times down
  ln "$dist"/*.deb "$deb/"
  ln "$dist"/*.rpm "$rpm/"
  (cd "$deb" && dpkg-scanpackages --multiversion . 2>/dev/null >Packages && gzip -9nk Packages)
  {
    printf 'Origin: ttmon\nLabel: ttmon\nSuite: stable\nCodename: stable\nArchitectures: amd64 arm64\nComponents: main\nDescription: monitor for Tenstorrent boards\n'
    printf 'Date: %s\nSHA256:\n' "$(date -Ru -d "@$SOURCE_DATE_EPOCH")"
    for file in Packages Packages.gz; do
      printf ' %s %s %s\n' "$(sha256sum <"$deb/$file" | cut -d' ' -f1)" "$(stat -c %s "$deb/$file")" "$file"
    done
  } >"$deb/Release"
  createrepo_c --quiet --no-database --revision "$SOURCE_DATE_EPOCH" --set-timestamp-to-revision "$rpm"
}
say "repositories for apt and dnf"
repositories
