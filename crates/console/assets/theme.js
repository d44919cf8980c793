// Sets the theme before the first paint, so that a page never flashes in the other one.
(() => {
  const theme = localStorage.getItem("longshore.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
