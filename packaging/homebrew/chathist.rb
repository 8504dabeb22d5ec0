# Formula for Homebrew: brew install --build-from-source ./packaging/homebrew/chathist.rb, beside the
# tarball of `make dist` in the top directory. A release replaces `url` with its address.
class Chathist < Formula
  desc "Talk to language models from the shell, and keep every conversation"
  url "file://#{File.expand_path("../../chathist-0.1.0.tar.gz", __dir__)}"
  version "0.1.0"
  license "MIT"

  depends_on "make" => :build
  depends_on "pkgconf" => :build
  depends_on "cjson"
  depends_on "curl"
  depends_on "libedit"
  depends_on "libpq"
  depends_on "libyaml"
  depends_on "lua@5.4"
  depends_on "ncurses"
  depends_on "openssl@3"
  depends_on "pcre2"
  depends_on "sqlite"
  depends_on "utf8proc"
  depends_on "util-linux"
  depends_on "zstd"

  # make is called gmake: the one of macOS is too old. brew names the folders of all these libraries to
  # pkg-config, the keg-only ones, too.
  def install
    system "gmake", "prefix=#{prefix}", "install"
  end

  test do
    ENV["CHAT_PROVIDER"] = "echo"
    ENV["CHAT_HISTORY"] = testpath/"history.jsonl"
    assert_match "hello", shell_output("#{bin}/chat --no-stdin hello")
    assert_match "hello", shell_output("#{bin}/hist-search hello")
  end
end
