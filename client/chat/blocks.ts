/**
 * Renders the blocks of a message. An element is updated in place while the type of its block stays
 * the same.
 */
import { artifactReferences } from '../../protocol/artifacts/reference.ts'
import type { Block, ToolResultBlock } from '../../protocol/sessions/turns/blocks.ts'
import { resultOf, toolStatus } from '../transcript/tools.ts'
import { displayText, el, updateText } from './dom.ts'
import { ArtifactList, fileView, type ReadFiles } from './files/file-view.ts'
import { MarkdownView } from './markdown-view.ts'

/** The element of one block, which `update` changes in place. */
export interface BlockView {
  readonly type: Block['type']
  readonly element: HTMLElement
  /**
   * Shows a new state of the block.
   * @param result the result of the tool, if the block is a tool use that has one.
   */
  update(block: Block, result: ToolResultBlock | undefined): void
}

/**
 * Creates the view of a block.
 * @param live whether the block is being streamed.
 * @param read fetches stored files.
 */
export function blockView(type: Block['type'], live: boolean, read: ReadFiles): BlockView {
  switch (type) {
    case 'image':
    case 'document':
      return fileView(type, read.attachment)
    case 'text':
      return text()
    case 'thinking':
      return thinking(live)
    case 'tool_use':
      return tool(read)
    default:
      return reminder(type)
  }
}

function text(): BlockView {
  const view = new MarkdownView()
  return {
    type: 'text',
    element: view.element,
    update: (block) => {
      if (block.type === 'text') view.update(block.text ?? '')
    },
  }
}

/** Creates the view of a reminder, as plain text. A block of an unknown type is shown empty. */
function reminder(type: Block['type']): BlockView {
  const text = document.createTextNode('')
  return {
    type,
    element: el('div', { class: 'text' }, text),
    update: (block) => {
      if (block.type === 'reminder') updateText(text, block.content)
    },
  }
}

function thinking(live: boolean): BlockView {
  const view = new MarkdownView()
  return {
    type: 'thinking',
    element: el(
      'details',
      { class: 'thinking', open: live },
      el('summary', {}, 'Thinking'),
      view.element,
    ),
    update: (block) => {
      if (block.type === 'thinking') view.update(block.thinking ?? '')
    },
  }
}

const statusLabels: Readonly<Record<string, string>> = {
  pending: 'pending',
  running: 'running',
  waiting: 'waiting for a person',
  ok: 'done',
  error: 'failed',
  cancelled: 'cancelled',
}

function tool({ artifact }: ReadFiles): BlockView {
  const [name, state, progress, input, output] = ['', '', '', '', ''].map((text) =>
    document.createTextNode(text),
  ) as [Text, Text, Text, Text, Text]
  const badge = el('span', { class: 'badge' }, state)
  const going = el('p', { class: 'note', hidden: true }, progress)
  const result = el(
    'details',
    { hidden: true },
    el('summary', {}, 'Result'),
    el('pre', { tabindex: '0' }, output),
  )
  const files = new ArtifactList(artifact)
  const element = el(
    'div',
    { class: 'tool', role: 'group' },
    el('p', { class: 'title' }, el('code', {}, name), badge),
    going,
    el('details', {}, el('summary', {}, 'Input'), el('pre', { tabindex: '0' }, input)),
    result,
    files.element,
  )
  return {
    type: 'tool_use',
    element,
    update: (block, came) => {
      if (block.type !== 'tool_use') return
      const status = toolStatus(block, came)
      const called = block.resolved_action?.name ?? block.name ?? ''
      updateText(name, called)
      element.setAttribute('aria-label', `Tool ${called}`)
      updateText(state, statusLabels[status] ?? status)
      badge.dataset['status'] = status
      const display = block.progress?.['display']
      updateText(progress, typeof display === 'string' ? display : '')
      going.hidden = progress.data === ''
      updateText(input, displayText(block.resolved_action?.input ?? block.input ?? {}))
      const value = came ? resultOf(came) : ''
      updateText(output, typeof value === 'string' ? value : displayText(value))
      result.hidden = came === undefined
      files.update(artifactReferences(value))
    },
  }
}
