// Prints a sheet, and searches with Enter in the editor of lines.
"use strict";

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.id !== "find") return;
  event.preventDefault();
  event.target.parentElement.querySelector("button").click();
});
