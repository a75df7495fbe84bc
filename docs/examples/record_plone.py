"""Record a Plone site while four threads read and edit it.

    python3 record_plone.py DIRECTORY

makes a virtual environment with Plone, an instance and a site in DIRECTORY, and records into
DIRECTORY/plone.workload what the threads do.  It takes Python 3.12 or later: with 3.11, templates
cannot be compiled in several threads.

    python3 record_plone.py DIRECTORY --cost

measures instead by how much recording increases the processor time of the process.  With
``--cache-size NUMBER`` the pickle cache of each connection holds that many objects.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import random
import statistics
import subprocess
import sys
import threading
import time
import venv
from functools import partial
from pathlib import Path

PACKAGES = ("Products.CMFPlone>=6.1,<6.2", "WebTest", "setuptools<81")
RECORDING = "zodbshootout>=1.0"
"""The package with the recording, which needs nothing of what that package requires."""
THREADS = 4
REQUESTS = 100
"""Requests of each thread."""
PAIRS = 200
"""Requests of each URL with recording, and as many without, for its cost."""
LOOK = 1.5
"""Seconds in which the recorder has seen whether it is to record: it looks once a second."""
EXTENSIONS = ("plone.app.contenttypes:default", "plonetheme.barceloneta:default")
URLS = ("/Plone", "/Plone/document-1", "/Plone/@@search?SearchableText=zope", "/Plone/sitemap")
CONFIGURATION = """
%define INSTANCE {place}
%import zodbshootout.recording
instancehome $INSTANCE
<zodb_db main>
  mount-point /
  cache-size 1000
  <recording>
    path {place}/plone.workload
    while-exists {place}/record-now
    <filestorage>
      path {place}/Data.fs
      blob-dir {place}/blobs
    </filestorage>
  </recording>
</zodb_db>
"""


def main(arguments: list[str]) -> None:
    """Record in this Python if it has Plone, or else in an environment that is made for it."""
    parser = argparse.ArgumentParser(usage="%(prog)s DIRECTORY [--cost] [--cache-size NUMBER]")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--cache-size", type=int, default=1000)
    options = parser.parse_args(arguments)
    place = options.directory.resolve()
    if importlib.util.find_spec("Products") is None:
        python = make_environment(place / "environment")
        subprocess.run([python, __file__, *arguments], check=True)
        return
    with_instance(place)
    browsers = warmed_up()
    import Zope2

    Zope2.DB.setCacheSize(options.cache_size)
    if options.cost:
        measure_cost(browsers[0])
    else:
        record(browsers, place)


def record(browsers: list[object], place: Path) -> None:
    """Have threads work while they are recorded."""
    (place / "record-now").touch()
    time.sleep(LOOK)
    threads = [
        threading.Thread(target=work, args=(number, browser))
        for number, browser in enumerate(browsers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    import Zope2

    Zope2.DB.close()
    print(f"Workload: {place / 'plone.workload'}")


def measure_cost(browser: object) -> None:
    """Print how much more processor time requests take while they are recorded.

    Each request is made twice, once recorded.  It loads everything that it needs, and what was
    recorded of it is written at once: both make more events and chunks than usual.
    """
    import Zope2

    recorder = Zope2.DB.storage._recorder
    recorder._look = lambda: None  # it would look once a second whether it is to record
    requests = [partial(browser.get, url) for url in URLS]
    pairs = []
    for number in range(PAIRS):
        for request in (*requests, None):
            seconds = {}
            for is_recorded in (True, False) if number % 2 else (False, True):
                Zope2.DB.cacheMinimize()
                gc.collect()
                recorder.active = is_recorded
                before = time.process_time()
                request() if request else edit(f"{number}-{is_recorded}")
                recorder._write()
                seconds[is_recorded] = time.process_time() - before
            pairs.append((seconds[True], seconds[False]))
    recorded, plain = map(sum, zip(*pairs, strict=True))
    ratio = recorded / plain
    error = statistics.stdev(a - ratio * b for a, b in pairs) * len(pairs) ** 0.5 / plain
    low, high = ratio - 1.96 * error, ratio + 1.96 * error
    print(f"with recording: {ratio:.4f} times the processor time ({low:.4f} to {high:.4f})")


def make_environment(place: Path) -> Path:
    """Make an environment with Plone, and of zodbshootout the recording; return its Python."""
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    alone = ["-m", "pip", "install", "--quiet", "--no-deps", RECORDING]
    subprocess.run([python, *alone], check=True)
    return python


def with_instance(place: Path) -> None:
    """Start an instance that is recorded while a certain file exists, and make a site."""
    make = Path(sys.executable).with_name("mkwsgiinstance")
    subprocess.run([make, "-d", place, "-u", "admin:admin"], check=True)
    configuration = place / "etc" / "recorded.conf"
    configuration.write_text(CONFIGURATION.format(place=place), encoding="utf-8")
    import transaction
    import Zope2
    from Products.CMFPlone.factory import addPloneSite
    from Zope2.Startup.run import configure_wsgi

    configure_wsgi(str(configuration))
    Zope2.startup_wsgi()
    app = as_administrator(Zope2.app())
    site = addPloneSite(app, "Plone", extension_ids=EXTENSIONS)
    for number in range(20):
        add_document(site, str(number))
    transaction.commit()
    app._p_jar.close()


def as_administrator(app: object) -> object:
    """Return the application as a request of the administrator sees it."""
    from AccessControl.SecurityManagement import newSecurityManager
    from Testing.makerequest import makerequest
    from zope.globalrequest import setRequest

    app = makerequest(app)
    setRequest(app.REQUEST)
    newSecurityManager(None, app.acl_users.getUser("admin").__of__(app.acl_users))
    return app


def add_document(site: object, name: str) -> None:
    """Add a document, which changes the catalogue."""
    from plone.dexterity.utils import createContentInContainer
    from zope.component.hooks import setSite

    setSite(site)
    document = createContentInContainer(
        site, "Document", id=f"document-{name}", title=f"Document {name}",
        description="zope " * (len(name) * 7), checkConstraints=False,
    )  # fmt: skip
    site.portal_workflow.doActionFor(document, "publish")


def warmed_up() -> list[object]:
    """Return a browser for each thread; the first requests of several at once would fail."""
    from webtest import TestApp
    from ZPublisher.WSGIPublisher import publish_module

    browsers = [TestApp(publish_module) for _ in range(THREADS)]
    for url in URLS:
        browsers[0].get(url)
    return browsers


def work(number: int, browser: object) -> None:
    """Read the front page, documents, search results and a listing, and now and then edit."""
    chance = random.Random(number)
    for request in range(REQUESTS):
        kind = chance.random()
        if kind < 0.4:
            browser.get("/Plone")
        elif kind < 0.6:
            browser.get(f"/Plone/document-{chance.randrange(20)}")
        elif kind < 0.75:
            browser.get("/Plone/@@search?SearchableText=zope")
        elif kind < 0.9:
            edit(f"{number}-{request}")
        else:
            browser.get("/Plone/sitemap")


def edit(name: str) -> None:
    """Add a document in a transaction, and try again after a conflict, as Zope does."""
    import transaction
    import Zope2
    from ZODB.POSException import ConflictError

    for _ in range(4):
        transaction.begin()
        app = as_administrator(Zope2.app())
        try:
            add_document(app.Plone, name)
            transaction.commit()
        except ConflictError:
            transaction.abort()
        else:
            return
        finally:
            app._p_jar.close()


if __name__ == "__main__":
    main(sys.argv[1:])
