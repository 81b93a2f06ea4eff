/**
 * Renders Markdown. An update changes only the nodes that differ, so a selection in unchanged text
 * is preserved while more text arrives.
 */
import { el, updateText } from './dom.ts'
import { markdownTree } from './markdown.ts'
import type { MarkdownElement, MarkdownNode } from './markdown-tree.ts'

/** Shows Markdown in an element; `update` replaces the content. */
export class MarkdownView {
  readonly element = el('div', { class: 'text markdown' })
  #source = ''
  #shown: readonly MarkdownNode[] = []

  update(source: string): void {
    if (source === this.#source) return
    this.#source = source
    const tree = markdownTree(source)
    patch(this.element, this.#shown, tree)
    this.#shown = tree
  }
}

/** Changes the children of a node from the state `before` to the state `after`. */
function patch(
  parent: Node,
  before: readonly MarkdownNode[],
  after: readonly MarkdownNode[],
): void {
  for (const [index, node] of after.entries()) {
    const child = parent.childNodes[index]
    const old = before[index]
    if (child === undefined || old === undefined) parent.appendChild(nodeOf(node))
    else if (typeof node === 'string' && child instanceof Text) updateText(child, node)
    else if (typeof node !== 'string' && typeof old !== 'string' && isSameElement(old, node))
      patch(child, old.children, node.children)
    else parent.replaceChild(nodeOf(node), child)
  }
  while (parent.childNodes.length > after.length) parent.lastChild?.remove()
}
function isSameElement(a: MarkdownElement, b: MarkdownElement): boolean {
  const names = Object.keys(a.attributes)
  return (
    a.tag === b.tag &&
    names.length === Object.keys(b.attributes).length &&
    names.every((name) => a.attributes[name] === b.attributes[name])
  )
}
function nodeOf(node: MarkdownNode): Node {
  return typeof node === 'string'
    ? document.createTextNode(node)
    : el(node.tag, node.attributes, ...node.children.map(nodeOf))
}
