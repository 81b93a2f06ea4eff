/**
 * Lets xterm.js style its elements under the console's content security policy. The policy permits
 * a style element only if it has the nonce of the document, and forbids style attributes. xterm.js
 * has no option for a nonce, and uses the global document even if the option `documentOverride` is
 * set. Therefore, while a terminal is open, new style elements get the nonce, and style attributes
 * of new spans are set through the CSSOM, which the policy permits. Preact is not affected, because
 * it calls `createElementNS`.
 */

/** Replaces `setAttribute` of new spans while a terminal is open. */
function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === 'style') this.style.cssText = value
  else Element.prototype.setAttribute.call(this, name, value)
}

/**
 * Permits styles on the elements that a document creates.
 * @returns a function that reverts the change.
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
  // Deleting the document's own property restores the method of the prototype.
  return () => void Reflect.deleteProperty(page, 'createElement')
}
