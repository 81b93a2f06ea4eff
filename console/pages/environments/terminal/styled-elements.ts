/**
 * Lets xterm.js style its elements under the console's policy, which permits style elements only
 * with the nonce of the document, and no style attributes. xterm.js has no option for a nonce, and
 * uses the global document in spite of its option `documentOverride`. While a terminal is open, new
 * style elements therefore get the nonce, and style attributes of new spans are set through the
 * CSSOM, which the policy permits. Preact is not affected, because it calls `createElementNS`.
 */

/** Sets an attribute. A method of the spans of a terminal. */
function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === 'style') this.style.cssText = value
  else Element.prototype.setAttribute.call(this, name, value)
}

/**
 * Changes how a document creates elements.
 * @returns a function that undoes this.
 */
export function permitTerminalStyles(page: Document): () => void {
  const nonce = page.documentElement.dataset['nonce'] ?? ''
  const create = page.createElement.bind(page)
  const createElement = (name: string, options?: ElementCreationOptions): HTMLElement => {
    const element = create(name, options)
    if (name === 'style') element.nonce = nonce
    if (name === 'span') element.setAttribute = setAttribute
    return element
  }
  Object.defineProperty(page, 'createElement', { value: createElement, configurable: true })
  // The method of the prototype is visible again without the own property.
  return () => void Reflect.deleteProperty(page, 'createElement')
}
