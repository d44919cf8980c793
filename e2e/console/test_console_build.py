"""Templates, volumes and registries in the console: what uses each, making, changing and deleting them."""

import io
import re
import tarfile

from playwright.sync_api import expect

from harness.browser import PHONE, key_for
from harness.client import Api


def row(page, name: str):
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name, exact=True))


def test_a_volume_is_made_changed_and_deleted_by_its_typed_name(console, api):
    tab = console().sign_in(path="/volumes")
    page = tab.page
    expect(page.get_by_text("No volume is here.")).to_be_visible()
    page.get_by_role("button", name="Make a volume").click()
    page.get_by_label("Name").fill("weights")
    page.get_by_label("Size in GB").fill("-1")
    page.get_by_role("button", name="Make the volume").click()
    # With the number under which the server's log has it.
    expect(page.get_by_role("alert")).to_contain_text(re.compile("size.* Request [0-9a-f]{16}$"))
    tab.forget("400")
    page.get_by_label("Size in GB").fill("200")
    page.keyboard.press("Enter")
    expect(row(page, "weights")).to_contain_text("0 B of 200 GB")
    (made,) = api.ok("GET", "/v1/networkvolumes")
    assert (made["name"], made["size"]) == ("weights", 200)

    page.get_by_role("button", name="Change weights").click()
    page.get_by_label("Size in GB").fill("400")
    page.get_by_role("button", name="Save").click()
    expect(row(page, "weights")).to_contain_text("400 GB")

    page.get_by_role("button", name="Delete weights").click()
    sure = page.get_by_role("button", name="Delete it")
    expect(sure).to_have_attribute("aria-disabled", "true")
    page.get_by_label("Type “weights”").fill("weights")
    sure.click()
    expect(page.get_by_text("No volume is here.")).to_be_visible()
    assert api.ok("GET", "/v1/networkvolumes") == []


def test_what_uses_a_volume_is_named_and_keeps_it(console, api):
    volume = api.ok("POST", "/v1/networkvolumes", json={"name": "shared models", "size": 10})
    endpoint = api.external(name="Reader of models", networkVolumeIds=[volume["id"]])
    page = console().sign_in(path="/volumes").page
    used = row(page, "shared models")
    expect(used.get_by_role("link", name="Reader of models")).to_be_visible()
    delete = page.get_by_role("button", name="Delete shared models")
    expect(delete).to_have_attribute("aria-disabled", "true")
    expect(delete).to_have_attribute("title", "Reader of models uses it.")
    # The news of the change comes by itself.
    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"networkVolumeIds": []})
    expect(used).to_contain_text("no endpoint")
    expect(delete).not_to_have_attribute("aria-disabled", "true")


def test_a_login_is_kept_and_its_password_never_shown_again(console, api):
    tab = console().keep_asking().sign_in(path="/registries")
    page = tab.page
    page.get_by_role("button", name="Add a login").click()
    page.get_by_label("Name", exact=True).fill("company")
    page.get_by_label("User name").fill("ada")
    expect(page.get_by_label("Password or token")).to_have_attribute("type", "password")
    page.get_by_label("Password or token").fill("hush-hush")
    page.get_by_role("button", name="Keep the login").click()
    expect(row(page, "company")).to_contain_text("no template")
    assert "hush-hush" not in page.content()
    (kept,) = api.ok("GET", "/v1/containerregistryauth")
    image = {"name": "private image", "imageName": "registry.local/private", "containerRegistryAuthId": kept["id"]}
    template = api.ok("POST", "/v1/templates", json=image)
    expect(row(page, "company")).to_contain_text("private image")
    expect(row(page, "company")).to_contain_text("no endpoint")
    endpoint = api.external(name="Puller", templateId=template["id"])
    expect(row(page, "company").get_by_role("link", name="Puller")).to_be_visible()
    expect(page.get_by_role("button", name="Delete company")).to_have_attribute("aria-disabled", "true")
    assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204
    assert api.call("DELETE", f"/v1/templates/{template['id']}").status_code == 204
    used = row(page, "company")
    used.get_by_role("button", name="Delete").click()
    used.get_by_role("button", name="Sure?").click()
    expect(page.get_by_text("No login is here.")).to_be_visible()


def test_a_template_is_made_and_changed_and_keeps_its_values(console, api):
    tab = console().sign_in(path="/templates")
    page = tab.page
    page.get_by_role("button", name="Make a template").click()
    form = page.get_by_role("dialog", name="Make a template")
    form.get_by_label("Name", exact=True).fill("Greeter")
    form.get_by_label("Command").fill("python -u 'hand ler.py'")
    form.get_by_label("Variables").fill("GREETING Hello")
    form.get_by_role("button", name="Make the template").click()
    expect(form.get_by_role("alert")).to_contain_text("is not NAME=value")
    assert tab.axe() == []
    form.get_by_label("Variables").fill("GREETING=Hello")
    form.get_by_label("Entrypoint").fill("nice -n 5")
    form.get_by_label("Mount path").fill("/weights")
    form.get_by_role("button", name="Make the template").click()
    expect(row(page, "Greeter")).to_be_visible()
    [made] = [one for one in api.ok("GET", "/v1/templates") if one["name"] == "Greeter"]
    assert (made["dockerEntrypoint"], made["dockerStartCmd"], made["volumeMountPath"]) == (["nice", "-n", "5"], ["python", "-u", "hand ler.py"], "/weights")
    page.get_by_role("button", name="Change Greeter").click()
    form = page.get_by_role("dialog", name="Change Greeter")
    expect(form.get_by_label("Command")).to_have_value("python -u 'hand ler.py'")
    expect(form.get_by_label("Variables")).to_have_value("GREETING=***")
    form.get_by_label("Image").fill("greeter:2")
    form.get_by_role("button", name="Save").click()
    expect(form).to_have_count(0)
    [made] = [template for template in api.ok("GET", "/v1/templates") if template["name"] == "Greeter"]
    assert (made["imageName"], made["dockerStartCmd"], made["env"]) == ("greeter:2", ["python", "-u", "hand ler.py"], {"GREETING": "***"})


def sent(api, text: str) -> dict:
    """A version of the code `greeter`, with one file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        file = tarfile.TarInfo("handler.py")
        file.size = len(text)
        tar.addfile(file, io.BytesIO(text.encode()))
    headers = {"Content-Type": "application/gzip"}
    return api.ok("POST", "/v1/code?name=greeter", data=packed.getvalue(), headers=headers)


def test_an_earlier_version_of_the_code_is_deployed_with_the_keyboard_alone(console, api, server):
    first, second = sent(api, "greet = 'Hello'"), sent(api, "greet = 'Hallo'")
    env = {"LONGSHORE_CODE_VERSION": second["hash"], "TOKEN": "hush"}
    program = {"name": "Code of greetings", "imageName": "code", "workdir": second["workdir"], "env": env}
    template = api.ok("POST", "/v1/templates", json=program)
    endpoint = api.endpoint(name="Greetings", templateId=template["id"], workersMax=0)
    listed = api.ok("GET", f"/v1/code?endpoint={endpoint.id}")
    assert [version["hash"] for version in listed] == [second["hash"], first["hash"]]
    tab = console().keep_asking().sign_in(path="/templates")
    page = tab.page
    page.get_by_role("button", name="Code of Code of greetings").press("Enter")
    dialog = page.get_by_role("dialog", name="Code of Code of greetings")
    expect(dialog.get_by_role("row").filter(has_text=second["hash"][:12])).to_contain_text("runs now")
    assert tab.axe() == []
    older = dialog.get_by_role("row").filter(has_text=first["hash"][:12])
    older.get_by_role("button", name="Deploy this").press("Enter")
    older.get_by_role("button", name="Sure?").press("Enter")
    expect(dialog).to_have_count(0)
    changed = api.ok("GET", f"/v1/templates/{template['id']}")
    assert (changed["workdir"], set(changed["env"])) == (first["workdir"], set(env))
    reads = key_for(api, {"scope": "read", "endpointIds": [endpoint.id]})["key"]
    limited = Api(server, reads)
    assert len(limited.ok("GET", f"/v1/code?endpoint={endpoint.id}")) == 2
    assert limited.call("GET", "/v1/code?name=greeter").status_code == 401
    for query, status in (("endpoint=nowhere", 404), (f"endpoint={endpoint.id}&name=greeter", 400), ("", 400)):
        assert api.call("GET", f"/v1/code?{query}").status_code == status, query
    tab.close()
    phone = console(width=PHONE, has_touch=True).sign_in(path="/templates")
    expect(phone.page.get_by_role("button", name="Code of Code of greetings")).to_be_visible()
    boxes = "[...document.querySelectorAll('.table-box')].map((box) => box.scrollWidth - box.clientWidth)"
    assert phone.sideways() <= 0 and phone.page.evaluate(boxes) == [0]


def test_a_version_that_is_deployed_keeps_the_variables_that_are_secrets(console, api):
    """A deploy takes out what the one before has set. Those of secrets were set by no deploy."""
    first, second = sent(api, "greet = 'Salut'"), sent(api, "greet = 'Ciao'")
    api.ok("POST", "/v1/secrets", json={"name": "HF_TOKEN", "value": "hush"})
    env = {"LONGSHORE_CODE_VERSION": second["hash"], "TOKEN": "hush", "HF_TOKEN": {"secret": "HF_TOKEN"}}
    template = api.ok("POST", "/v1/templates", json={"name": "Code with secrets", "workdir": second["workdir"], "env": env})
    endpoint = api.endpoint(name="Greets in secret", templateId=template["id"], workersMax=0)
    page = console().keep_asking().sign_in(path="/templates").page
    page.get_by_role("button", name="Code of Code with secrets").click()
    older = page.get_by_role("dialog").get_by_role("row").filter(has_text=first["hash"][:12])
    older.get_by_role("button", name="Deploy this").click()
    older.get_by_role("button", name="Sure?").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    program = {"workdir": second["workdir"], "env": {"LONGSHORE_CODE_VERSION": second["hash"]}}
    api.ok("POST", f"/v1/endpoints/{endpoint.id}/deploy", json={"template": program})
    kept = {"LONGSHORE_CODE_VERSION": "***", "TOKEN": "***", "HF_TOKEN": {"secret": "HF_TOKEN"}}
    assert api.ok("GET", f"/v1/templates/{template['id']}")["env"] == kept


def test_a_form_of_a_template_says_what_it_cannot_do_and_what_starts_anew(console, api):
    api.ok("POST", "/v1/secrets", json={"name": "CRANE", "value": "hush"})
    env = {"TOKEN": {"secret": "CRANE"}, "SIZE": "small"}
    template = api.ok("POST", "/v1/templates", json={"name": "Old crane", "imageName": "crane:1", "env": env})
    api.external(name="Lifts", templateId=template["id"])
    page = console().sign_in(path="/templates").page
    page.get_by_role("button", name="Change Old crane").click()
    form = page.get_by_role("dialog")
    anew = form.get_by_text("Lifts gets a new version")
    form.get_by_label("Name", exact=True).fill("New crane")
    expect(anew).to_have_count(0)
    for label, before, after in (("Image", "crane:1", "crane:2"), ("Command", "", "sh"), ("Folder", "", "/srv"), ("Variables", "SIZE=***", "SIZE=large")):
        form.get_by_label(label).fill(after)
        expect(anew).to_be_visible()
        form.get_by_label(label).fill(before)
        expect(anew).to_have_count(0)
    form.get_by_label("Variables").fill("SIZE=***\nTOKEN=mine")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("alert")).to_have_text("TOKEN has the value of a secret.")
    assert api.ok("GET", f"/v1/templates/{template['id']}")["name"] == "Old crane"
    form.get_by_label("Variables").fill("SIZE=***")
    form.get_by_role("button", name="Save").click()
    expect(form).to_have_count(0)
    changed = api.ok("GET", f"/v1/templates/{template['id']}")
    assert (changed["name"], changed["env"]) == ("New crane", {"TOKEN": {"secret": "CRANE"}, "SIZE": "***"})


def test_a_key_changes_the_templates_that_only_its_endpoints_use(console, api):
    """The server refuses it all others, and the registries."""
    own, shared = api.template(name="Mine alone"), api.template(name="Ours")
    mine, _, _ = [api.external(name=name, templateId=used["id"]) for name, used in (("Mine", own), ("Mine, too", shared), ("Another's", shared))]
    manage = {"scope": "manage", "endpointIds": [mine.id]}
    for scopes in ([manage], [manage, {"scope": "read"}]):
        page = console().sign_in(key_for(api, *scopes)["key"], path="/templates").page
        expect(row(page, "Ours")).to_have_count(len(scopes) - 1)
        expect(page.get_by_role("button", name="Change Ours")).to_have_count(0)
        page.get_by_role("button", name="Change Mine alone").click()
        form = page.get_by_role("dialog")
        form.get_by_label("Image").fill(f"mine:{len(scopes)}")
        form.get_by_role("button", name="Save").click()
        expect(form).to_have_count(0)
        assert api.ok("GET", f"/v1/templates/{own['id']}")["imageName"] == f"mine:{len(scopes)}"


def test_templates_say_what_they_start_and_hide_values(console, api):
    endpoint = api.external(name="With a template")
    free = {"name": "unused one", "imageName": "vllm/vllm-openai", "env": {"HF_TOKEN": "hush-hush", "MODEL": "phi"}}
    api.ok("POST", "/v1/templates", json=free)
    page = console().keep_asking().sign_in(path="/templates").page
    unused = row(page, "unused one")
    expect(unused).to_contain_text("vllm/vllm-openai")
    expect(unused).to_contain_text("HF_TOKEN MODEL")
    expect(page.get_by_role("link", name="With a template", exact=True)).to_be_visible()
    page.get_by_role("button", name="Show unused one").click()
    expect(page.get_by_role("dialog")).to_contain_text("HF_TOKEN")
    assert "hush-hush" not in page.content()
    page.keyboard.press("Escape")
    unused.get_by_role("button", name="Delete").click()
    unused.get_by_role("button", name="Sure?").click()
    expect(unused).to_have_count(0)
    assert endpoint.record["templateId"] in [template["id"] for template in api.ok("GET", "/v1/templates")]


def test_a_key_that_may_only_look_changes_nothing(console, api):
    tab = console().sign_in(key_for(api, {"scope": "read"})["key"], path="/templates")
    expect(tab.page.get_by_role("heading", name="Templates", level=1)).to_be_visible()
    expect(tab.page.get_by_role("button", name="Delete")).to_have_count(0)
    for name in ("Volumes", "Registries"):
        expect(tab.page.get_by_role("link", name=name)).to_have_count(0)
    tab.go("/volumes")
    expect(tab.page.get_by_text("The volumes are shown to a key that manages all endpoints.")).to_be_visible()
