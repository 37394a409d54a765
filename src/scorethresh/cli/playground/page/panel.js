"use strict";
// Nothing here is global: the report below has names of its own.
addEventListener("DOMContentLoaded", () => {
  const at = (id) => document.getElementById(id), form = at("settings"), status = at("status"), problem = at("problem");

  // Ask the server; an answer that is not fine is one line of text.
  async function ask(address, options) {
    const answer = await fetch(address, { method: "POST", ...options }).catch(() => null);
    if (!answer) throw new Error("The server does not answer. Was scorethresh view stopped?");
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return text;
  }

  // Do something that takes long: say how long, and tell a failure in one line.
  async function busy(words, task) {
    const start = performance.now();
    let share = "";
    const tell = async () => {
      status.textContent = `${words} … ${Math.floor((performance.now() - start) / 1000)} s${share && `, ${share}`}`;
      const answer = await fetch("progress").catch(() => null);
      share = answer && answer.ok ? await answer.text() : "";
    };
    const clock = setInterval(tell, 1000);
    tell();
    status.hidden = false;
    problem.textContent = "";
    document.body.classList.add("busy");
    const fields = form ? [...form.elements] : [];
    for (const field of fields) field.disabled = true;
    try {
      await task();
    } catch (error) {
      problem.textContent = error.message;
    } finally {
      clearInterval(clock);
      status.hidden = true;
      document.body.classList.remove("busy");
      for (const field of fields) field.disabled = false;
    }
  }

  const open = (file) => busy(`Denoising ${file.name}`, async () => {
    const key = await ask(`open?${new URLSearchParams({ name: file.name })}`, { body: file });
    const query = new URLSearchParams({ file: key });
    await ask(`run?${query}`).catch(() => {});
    location.assign(`result?${query}`); // if it failed, that page says why, and has the fields that help
  });

  at("file").addEventListener("change", (event) => { if (event.target.files[0]) open(event.target.files[0]); });
  addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("over"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("over"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("over");
    const file = event.dataTransfer.files[0];
    if (file) open(file);
  });
  if (!form) return;

  // A page without a result has no strength.
  const slider = at("strength");
  const change = () => {
    if (document.body.classList.contains("busy")) return; // the Enter key is a change and a submission
    const query = new URLSearchParams(new FormData(form));
    if (slider) query.set("strength", slider.value);
    busy("Denoising", async () => {
      await ask(`run?${query}`);
      location.assign(`result?${query}`);
    });
  };
  form.addEventListener("change", change);
  form.addEventListener("submit", (event) => { event.preventDefault(); change(); });
  // A page that the browser kept shows the settings that it was made with.
  addEventListener("pageshow", (event) => { if (event.persisted) form.reset(); });
  if (!slider) return;

  const command = at("command"), download = at("download"), base = command.textContent, link = new URL(download.href);
  const mixed = () => {
    command.textContent = base + (slider.value === "100" ? "" : ` --strength ${slider.value / 100}`);
    link.searchParams.set("strength", slider.value);
    download.href = link.href;
  };
  slider.addEventListener("input", mixed);
  mixed();
  at("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(command.textContent);
    at("copy").textContent = "Copied";
    setTimeout(() => { at("copy").textContent = "Copy"; }, 1500);
  });
});
