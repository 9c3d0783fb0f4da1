// Copies `text` to the clipboard and confirms it in `status`. If the browser refuses, `status` shows the text to copy by hand.
export async function copied(text, status) {
  try {
    await navigator.clipboard.writeText(text);
    status.textContent = "Copied.";
    setTimeout(() => (status.textContent = ""), 4000);
  } catch { // browsers allow it on secure addresses only
    status.textContent = text;
  }
}
