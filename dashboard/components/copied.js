// Puts `text` into the clipboard and says so in `status`; where the browser refuses, it shows the text there to copy by hand.
export async function copied(text, status) {
  try {
    await navigator.clipboard.writeText(text);
    status.textContent = "Copied.";
    setTimeout(() => (status.textContent = ""), 4000);
  } catch { // browsers give the clipboard to safe addresses only
    status.textContent = text;
  }
}
