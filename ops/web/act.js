// Sends an action with the token that the visitor types. The token is kept
// nowhere.
"use strict";
(() => {
  for (const form of document.querySelectorAll("form.act")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const said = form.querySelector("output");
      const fields = new URLSearchParams(new FormData(form));
      const token = fields.get("token");
      fields.delete("token");
      said.textContent = "…";
      try {
        const answer = await fetch(form.getAttribute("data-action"), { // form.dataset is the input of that name
          method: "POST", body: fields, headers: { Authorization: `Bearer ${token}` },
        });
        said.textContent = (await answer.text()).trim();
        said.className = answer.ok ? "good" : "bad";
      } catch {
        said.textContent = "the server did not answer";
        said.className = "bad";
      }
      form.elements.token.value = "";
    });
  }
})();
