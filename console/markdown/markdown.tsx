/**
 * Shows Markdown of users and models. `client/chat/markdown.ts` parses it into a tree that contains
 * only known elements, and links to http, https and mailto.
 */
import { h, type VNode } from 'preact'
import { useMemo } from 'preact/hooks'
import { markdownTree } from '../../client/chat/markdown.ts'
import type { MarkdownNode } from '../../client/chat/markdown-tree.ts'

const rendered = (node: MarkdownNode): VNode | string =>
  typeof node === 'string'
    ? node
    : h<Record<string, string>>(node.tag, node.attributes, ...node.children.map(rendered))

/** Shows a text as Markdown. Unchanged parts keep their elements while more text arrives. */
export function Markdown({ text }: { readonly text: string }) {
  const tree = useMemo(() => markdownTree(text), [text])
  return <div class="markdown user-text">{tree.map(rendered)}</div>
}
