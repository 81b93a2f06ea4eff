/**
 * The document for xterm.js under the console's policy, which permits style elements only with the
 * nonce of the document, and no style attributes. xterm.js has no option for a nonce, but takes a
 * document (`documentOverride`). This one gives its style elements the nonce, and sets its style
 * attributes through the CSSOM, which the policy permits.
 */

/** Sets an attribute. A method of the elements that the terminal creates. */
function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === 'style') this.style.cssText = value
  else Element.prototype.setAttribute.call(this, name, value)
}

/** Returns the document of the page as xterm.js sees it. */
export function styledDocument(document: Document): Document {
  const nonce = document.documentElement.dataset['nonce'] ?? ''
  const createElement = (name: string): HTMLElement => {
    const element = document.createElement(name)
    if (name === 'style') element.nonce = nonce
    else element.setAttribute = setAttribute
    return element
  }
  return new Proxy(document, {
    get(target, name) {
      if (name === 'createElement') return createElement
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    set: (target, name, value) => Reflect.set(target, name, value, target),
  })
}
