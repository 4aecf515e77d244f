// The dialog in which a person publishes a head, takes it back, or stops its training: who does it, and why.
import { post } from "./api.js";
import { el } from "./format.js";

const EFFECT = {
  pin: "Servers that ask which head to serve get this one, whatever the verdict on it is.",
  rollback: "Servers that ask which head to serve get the one before it, even if this one is ready.",
  auto: "Servers that ask which head to serve get what the verdicts decide: orders about this head no longer count.",
  cancel: "The training stops, and the request gets no head.",
};
let who = ""; // kept for the next order

/** ask opens the dialog; done is called when the order has been written. */
export function ask(action, title, id, done) {
  const opener = document.activeElement;
  const by = el("input", { name: "by", required: "", maxlength: "100", autocomplete: "name", value: who });
  const why = el("input", { name: "why", required: "", maxlength: "100", autocomplete: "off" });
  const refusal = el("p.refusal", { role: "alert" });
  const send = el("button.primary", { type: "submit" }, title);
  const back = el("button", { type: "button" }, "Do nothing");
  const form = el("form", {}, el("h2", { id: "h-order" }, `${title}: ${id}`), el("p", { id: "p-order" }, EFFECT[action]),
    el("label", {}, "Who ", by), el("label", {}, "Why ", why), refusal, el("div.buttons", {}, send, back));
  const dialog = el("dialog", { "aria-labelledby": "h-order", "aria-describedby": "p-order" }, form);
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    who = by.value.trim();
    send.disabled = true;
    refusal.textContent = "";
    try {
      await post(`heads/${action}`, { id, by: who, why: why.value.trim() });
      dialog.close();
      done();
    } catch (err) {
      refusal.textContent = `Refused: ${err.message}`;
    }
    send.disabled = false;
  });
  back.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    dialog.remove();
    const again = [...document.querySelectorAll("[data-key]")].find((b) => b.dataset.key === opener?.dataset.key); // the list may have been drawn anew
    (again || document.getElementById("h-heads")).focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  (who ? why : by).focus();
}
