/** Shows the differences between two texts, side by side on wide screens. */
import { useEffect, useRef } from 'preact/hooks'
import { showError } from '../design/notify.ts'
import { loadPart } from '../router/part.ts'
import type { Language } from './located.ts'
import { editorText as text } from './text.ts'

/** Shows the changes between two texts. */
export function Differences({
  before,
  after,
  language,
}: {
  readonly before: string
  readonly after: string
  readonly language: Language | 'text'
}) {
  const frame = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = frame.current
    if (!element || before === after) return
    let isShown = true
    let close: (() => void) | undefined
    const side = element.clientWidth >= 720
    loadPart('comparison', () => import('./compare.ts')).then(({ openComparison }) => {
      if (isShown) close = openComparison(element, before, after, language, side)
    }, showError)
    return () => {
      isShown = false
      close?.()
    }
  }, [before, after, language])
  return before === after ? (
    <p class="soft">{text.same}</p>
  ) : (
    <div ref={frame} class="editor-frame comparison" />
  )
}
