// Says in a <pre> at the end of a page what a reader would see wrong in it.
window.faults = [];
window.onerror = message => { faults.push("error: " + message); };
window.onload = () => {
  document.querySelectorAll("details").forEach(details => { details.open = true; });
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) faults.push(`the page is ${wide} pixels wide, the window ${innerWidth}`);
  const figures = [...document.querySelectorAll("svg")];
  for (const [number, figure] of figures.entries()) {
    const name = `figure ${number + 1}`;
    const frame = figure.getBoundingClientRect();
    if (frame.width < 100 || frame.height < 50) faults.push(`${name} is empty`);
    const texts = [...figure.querySelectorAll("text")].map(text => [text.textContent.trim(), text.getBoundingClientRect()]);
    for (const [index, [text, place]] of texts.entries()) {
      // A pixel: boxes of text are a little larger than what is painted.
      if (place.left < frame.left - 1 || place.right > frame.right + 1 || place.top < frame.top - 1 || place.bottom > frame.bottom + 1)
        faults.push(`${name}: "${text}" is cut off`);
      for (const [other, there] of texts.slice(0, index)) {
        const width = Math.min(place.right, there.right) - Math.max(place.left, there.left);
        const height = Math.min(place.bottom, there.bottom) - Math.max(place.top, there.top);
        if (width > 1 && height > 2) faults.push(`${name}: "${text}" covers "${other}"`);
      }
    }
  }
  const seen = document.createElement("pre");
  seen.id = "seen";
  seen.textContent = JSON.stringify({ figures: figures.length, faults });
  document.body.append(seen);
};
