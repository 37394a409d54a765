"""The page of `scorethresh view`: who may ask, what is answered, and what it does in a browser."""

import dataclasses
import html
import http.client
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from PIL import Image

import scorethresh as st
from helpers import browser_or_skip, noisy_step
from scorethresh import cli
from scorethresh.cli.playground import desk as desk_module
from scorethresh.cli.playground.desk import Desk, PageError
from scorethresh.cli.playground.settings import Settings


def png(values):
    out = BytesIO()
    Image.fromarray(values).save(out, "png")
    return out.getvalue()


def pixels(content):
    with Image.open(BytesIO(content)) as image:
        return np.asarray(image)


class Server:
    """A server in a process of its own."""

    def __init__(self, folder, *arguments):
        env = {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "scorethresh", "view", "--no-browser", *arguments]
        self.process = subprocess.Popen(
            command, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.address = self.process.stdout.readline().split()[0]
        self.parts = urlsplit(self.address)

    def ask(self, method, path, body=None, base=None, **headers):
        connection = http.client.HTTPConnection(self.parts.hostname, self.parts.port, timeout=120)
        connection.request(method, (self.parts.path if base is None else base) + path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def open(self, name, content):
        answer, text = self.ask("POST", f"open?name={quote(name)}", content)
        return answer.status, text.decode()

    def stop(self, number=signal.SIGINT):
        """Stop the process; give the exit code, the seconds that it took and standard error."""
        start = time.monotonic()
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=20)
        return self.process.returncode, time.monotonic() - start, err


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    running = Server(folder)
    yield running
    code, seconds, err = running.stop()
    assert (code, err) == (130, "stopped\n")
    assert seconds < 2
    assert list(folder.iterdir()) == []


def test_only_the_whole_address_is_answered(server):
    assert server.parts.hostname == "127.0.0.1"
    token = server.parts.path.strip("/")
    assert len(token) >= 20
    assert server.ask("GET", "")[0].status == 200
    for base in ("/", "/result", f"/{token[:-1]}/", f"/{token}x/", f"//{token}/", "/%2e%2e/"):
        answer, content = server.ask("GET", "", base=base)
        assert (answer.status, b"whole address" in content) == (403, True), base
    for host in ("evil.example", f"evil.example:{server.parts.port}", "127.0.0.1.evil.example"):
        assert server.ask("GET", "", Host=host)[0].status == 400
    assert server.ask("GET", "", Host=f"localhost:{server.parts.port}")[0].status == 200
    assert server.ask("GET", "open")[0].status == 405


def test_answers_are_not_kept_and_not_framed(server):
    headers = server.ask("GET", "")[0].headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    assert "server" not in headers


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.exe", b"MZ", "a.exe tells no format"),
        ("", b"", "tells no format"),
        ("a.png", b"not a picture", "a.png cannot be read as PNG"),
        ("a.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", "a.npy"),
        ("<b>.tif", b"II*\x00", "<b>.tif cannot be read as TIFF"),
        ("../../etc/x.csv", b"a,b\n1,2\n3,4\n", "x.csv"),
        ("record.hea", b"record 1 360 10\n/etc/passwd 16\n", "record.hea is not a single file"),
    ],
)
def test_hostile_files_get_one_line(server, name, content, words):
    status, text = server.open(name, content)
    if status == 200:
        answer, text = server.ask("POST", f"run?file={text}")
        status, text = answer.status, text.decode()
    assert status == 422
    assert words in text
    assert "\n" not in text
    assert "scorethresh-" not in text, "the folder of the copies is nobody's business"


def test_settings_that_make_no_sense_get_one_line(server):
    _, key = server.open("a.png", png(noisy_step()))
    for query, words in (
        ({"file": "0" * 16}, "no longer open"),
        ({"file": key, "noise": "purple"}, "purple"),
        ({"file": key, "sigma": "/etc/passwd.csv"}, "positive number"),
        ({"file": key, "choose": "best"}, "best"),
        ({"file": key, "strength": "-1"}, "strength must be a whole number from 0 to 100"),
        ({"file": key, "strength": "1e9"}, "strength must be a whole number from 0 to 100"),
    ):
        answer, text = server.ask("POST", f"run?{urlencode(query)}")
        assert (answer.status, text.count(b"\n")) == (422, 0)
        assert words in text.decode()
        answer, page = server.ask("GET", f"result?{urlencode(query)}")
        assert answer.status == 422
        assert words in page.decode()


def test_a_table_asks_for_its_column(server):
    t = np.arange(300)
    y = 50 * np.sin(t / 20) + np.random.default_rng(0).normal(0, 5, (2, 300))
    lines = ["t,a,b", *(f"{k},{a:.4f},{b:.4f}" for k, a, b in zip(t, *y, strict=True))]
    _, key = server.open("two.csv", "\n".join(lines).encode())
    assert b"--column" in server.ask("POST", f"run?file={key}")[1]
    answer, content = server.ask("GET", f"download?file={key}&column=a&choose=bands")
    assert answer.status == 200
    rows = [line.split(",") for line in content.decode().splitlines()]
    expected = st.denoise(np.array([float(f"{v:.4f}") for v in y[0]]), choose="bands")
    np.testing.assert_allclose([float(row[1]) for row in rows[1:]], expected, atol=6e-5)
    assert [row[2] for row in rows] == [line.split(",")[2] for line in lines]
    page = server.ask("GET", f"result?file={key}&column=a&choose=bands")[1].decode()
    assert 'name="column"' in page
    assert 'name="axes"' not in page


def test_names_are_only_shown(server):
    name = "'; rm -rf ~ <img src=x onerror=alert(1)>.png"
    _, key = server.open(name, png(noisy_step()))
    page = server.ask("GET", f"result?file={key}&choose=bands")[1].decode()
    assert "<img src=x" not in page
    command = re.search('<code id="command">(.*?)</code>', page)[1]
    assert shlex.split(html.unescape(command))[:5] == [
        "scorethresh",
        "denoise",
        name,
        "-o",
        f"{name[:-4]}-denoised.png",
    ]
    answer, _ = server.ask("GET", f"download?file={key}&choose=bands")
    assert "\n" not in answer.headers["Content-Disposition"]


def test_the_command_does_what_the_page_does(server, tmp_path, monkeypatch):
    y = noisy_step()
    _, key = server.open("-in.png", png(y))
    settings = {"file": key, "noise": "white", "sigma": "11", "choose": "bands", "strength": "60"}
    content = server.ask("GET", f"download?{urlencode(settings)}")[1]
    page = server.ask("GET", f"result?{urlencode(settings)}")[1].decode()
    command = shlex.split(re.search('<code id="command">(.*?)</code>', page)[1])
    monkeypatch.chdir(tmp_path)
    Path("-in.png").write_bytes(png(y))
    assert cli.main([*command[1:], "--strength", "0.6"]) == 0
    np.testing.assert_array_equal(pixels(Path(command[4]).read_bytes()), pixels(content))
    estimate = st.denoise(y, sigma=11.0, choose="bands").astype(float)
    assert np.abs(pixels(content) - (0.4 * y + 0.6 * estimate)).max() <= 0.5 + 1e-4


def test_the_file_of_the_command_is_shown_first(tmp_path):
    (tmp_path / "a.png").write_bytes(png(noisy_step()))
    running = Server(tmp_path, "a.png")
    try:
        answer, _ = running.ask("GET", "")
        assert answer.status == 303
        answer, page = running.ask("GET", answer.headers["Location"])
        assert answer.status == 200
        assert b"<h1>a.png</h1>" in page
    finally:
        code, _, _ = running.stop(signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_files_that_are_not_there_are_told_before_anything_starts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, words in (("none.png", "none.png does not exist"), ("none", "tells no format")):
        assert cli.main(["view", "--no-browser", name]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_a_missing_package_is_named_with_its_extra(package, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("scorethresh.cli.playground")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.applications", None)
    assert cli.main(["view", "--no-browser"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {package} is not installed. Install it: pip install '.[view]'")


def test_a_port_that_is_taken_is_told(server, capsys):
    assert cli.main(["view", "--no-browser", "--port", str(server.parts.port)]) == 2
    assert f"--port {server.parts.port} cannot be used" in capsys.readouterr().err


def test_ctrl_c_stops_work_under_way(tmp_path):
    running = Server(tmp_path)
    _, key = running.open("a.npy", npy(np.random.default_rng(0).normal(size=(2000, 2000))))
    connection = http.client.HTTPConnection(running.parts.hostname, running.parts.port)
    connection.request("POST", f"{running.parts.path}run?file={key}")
    time.sleep(1.0)
    code, seconds, err = running.stop()
    connection.close()
    assert (code, err) == (130, "stopped\n")
    assert seconds < 3
    assert list(tmp_path.iterdir()) == []


def test_long_work_tells_how_far_it_is(tmp_path):
    running = Server(tmp_path)
    assert running.ask("GET", "progress")[1] == b"", "nothing is under way"
    _, key = running.open("a.npy", npy(np.random.default_rng(0).normal(size=(3000, 3000)).astype(np.float32)))
    connection = http.client.HTTPConnection(running.parts.hostname, running.parts.port)
    connection.request("POST", f"{running.parts.path}run?file={key}&choose=bands&sigma=1")
    shares = set()
    end = time.monotonic() + 60
    while not {s for s in shares if s not in ("", "0%")} and time.monotonic() < end:
        shares.add(running.ask("GET", "progress")[1].decode())
        time.sleep(0.05)
    running.stop()
    connection.close()
    assert any(re.fullmatch(r"[1-9]\d?%", share) for share in shares)


def npy(values):
    out = BytesIO()
    np.save(out, values)
    return out.getvalue()


# the desk


def opened(desk, name, content):
    place = desk.place_for(name)
    place.path.write_bytes(content)
    return desk.add(place)


@pytest.mark.parametrize(
    ("name", "result"),
    [("a.NII.gz", "a-denoised.NII.gz"), ("C:\\x\\b.tif", "b-denoised.tif"), ("a.b.PNG", "a.b-denoised.PNG")],
)
def test_results_are_named_after_their_file(tmp_path, name, result):
    file = Desk(tmp_path).place_for(name)
    assert file.result_name == result
    assert file.path.parent == tmp_path


def test_results_are_kept_and_dropped(tmp_path):
    desk = Desk(tmp_path)
    key = opened(desk, "a.png", png(noisy_step()))
    settings = Settings(key, sigma="12", choose="bands")
    first = desk.find(settings)
    half = desk.find(dataclasses.replace(settings, strength="50"))
    assert half.result.found is first.result.found, "the strength needs no new work"
    assert half.result.strength == 0.5
    for sigma in range(desk_module.MOST_RESULTS):
        desk.find(dataclasses.replace(settings, sigma=str(13 + sigma)))
    assert desk.find(settings).result.found is not first.result.found


def test_old_files_are_removed(tmp_path):
    desk = Desk(tmp_path)
    keys = [opened(desk, "a.png", png(noisy_step(seed=k))) for k in range(desk_module.MOST_FILES + 1)]
    assert len(list(tmp_path.iterdir())) == desk_module.MOST_FILES
    with pytest.raises(PageError, match="no longer open"):
        desk.find(Settings(keys[0]))


def test_large_uploads_are_refused_whether_they_say_so_or_not(tmp_path):
    running = Server(tmp_path, "--limit", "1")
    status, text = running.open("a.npy", bytes((1 << 20) + 1))
    assert (status, "a.npy is larger than 1 MiB" in text) == (422, True)

    def pieces():  # sent without a length
        for _ in range(3):
            yield bytes(1 << 19)

    answer, text = running.ask("POST", "open?name=a.npy", pieces())
    assert (answer.status, b"larger than 1 MiB" in text) == (422, True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert running.stop()[0] == 130


# in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = browser_or_skip()
    driver.downloads = tmp_path_factory.mktemp("downloads")
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(driver.downloads)})
    yield driver
    driver.quit()


def waited(condition, seconds=60.0):
    """Return what the condition gives once it is true."""
    from selenium.common.exceptions import StaleElementReferenceException, WebDriverException

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except (StaleElementReferenceException, WebDriverException):
            pass  # the page is being replaced
        time.sleep(0.05)
    raise AssertionError("nothing came")


def test_drop_look_change_and_download(browser, server, tmp_path):
    from selenium.webdriver import Keys
    from selenium.webdriver.support.ui import Select

    y = noisy_step()
    (tmp_path / "picture.png").write_bytes(png(y))
    browser.get(server.address)
    assert browser.find_element("css selector", ".drop").text == "Drop a file here\nor choose one"
    browser.find_element("id", "file").send_keys(str(tmp_path / "picture.png"))
    headline = waited(lambda: browser.find_element("id", "headline").text)
    found = st.Denoiser().run(y)
    level, error = re.search(r"from σ = (\S+) to an error of (\S+)", headline).groups()
    assert float(level) == pytest.approx(found.sigma, rel=0.01)
    assert float(error) == pytest.approx(found.predicted_mse**0.5, rel=0.1)
    assert browser.find_element("css selector", "#sure .verdict").text == found.verdict
    assert browser.execute_script("return document.getElementById('after').naturalWidth") == 64

    before = browser.current_url
    Select(browser.find_element("name", "noise")).select_by_value("correlated")
    waited(lambda: browser.current_url != before and "noise=correlated" in browser.current_url)
    other = st.Denoiser(noise="correlated").run(y)
    facts = waited(lambda: browser.find_element("css selector", "#sure dl").text)
    assert other.noise.name in facts
    assert found.noise.name not in facts.splitlines()

    for _ in range(6):
        browser.find_element("id", "strength").send_keys(Keys.ARROW_LEFT)
    command = browser.find_element("id", "command").text
    assert command == "scorethresh denoise picture.png -o picture-denoised.png --noise correlated --strength 0.7"
    browser.find_element("id", "download").click()
    file = browser.downloads / "picture-denoised.png"
    waited(file.exists)
    expected = 0.3 * y + 0.7 * st.denoise(y, noise="correlated").astype(float)
    assert np.abs(pixels(file.read_bytes()) - expected).max() <= 0.5 + 1e-4

    browser.back()
    waited(lambda: Select(browser.find_element("name", "noise")).first_selected_option.text == "found from the data")
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_bad_file_or_level_is_told_in_the_page(browser, server, tmp_path):
    from selenium.webdriver import Keys

    t = np.arange(200)
    np.savetxt(tmp_path / "two.csv", np.c_[t, np.random.default_rng(0).normal(size=200)], delimiter=",", header="t,v")
    (tmp_path / "broken.tif").write_bytes(b"II*\x00 and then nothing")
    (tmp_path / "fine.png").write_bytes(png(noisy_step()))
    browser.get(server.address)
    browser.find_element("id", "file").send_keys(str(tmp_path / "broken.tif"))
    told = waited(lambda: browser.find_element("id", "problem").text)
    assert told.startswith("broken.tif cannot be read as TIFF")
    browser.find_element("id", "file").send_keys(str(tmp_path / "two.csv"))
    waited(lambda: "--column" in browser.find_element("id", "problem").text)
    browser.find_element("name", "column").send_keys("2", Keys.ENTER)
    waited(lambda: browser.find_element("id", "headline").text)
    assert "--column 2" in browser.find_element("id", "command").text
    browser.find_element("id", "file").send_keys(str(tmp_path / "fine.png"))
    waited(lambda: browser.find_element("tag name", "h1").text == "fine.png")
    waited(lambda: browser.find_element("id", "headline").text)
    level = browser.find_element("name", "sigma")
    level.send_keys("-3", Keys.ENTER)
    assert "--sigma must be a positive number" in waited(lambda: browser.find_element("id", "problem").text)
    assert browser.find_element("name", "sigma").is_enabled()
    browser.get_log("browser")  # the answers 422 are listed there
