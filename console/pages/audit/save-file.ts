/** Downloads of generated text. */

/** Time after which the browser is assumed to have read the text. */
const READ_MS = 60_000

/** Offers a text as a download; `type` is its media type. */
export function saveFile(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), READ_MS)
}
