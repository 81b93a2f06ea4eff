/**
 * Accepts files dropped on a part of a page. Other dropped content, such as text, is left to the
 * browser.
 */
import { useEffect, useRef, useState } from 'preact/hooks'

/** The event handlers of a drop target, and whether files are dragged over it. */
interface FileDrop {
  readonly over: boolean
  readonly target: {
    readonly onDragOver: (event: DragEvent) => void
    readonly onDragLeave: (event: DragEvent) => void
    readonly onDrop: (event: DragEvent) => void
  }
}

/**
 * Makes an element a drop target for files.
 * @param allowed whether files are accepted.
 * @param take called with the dropped files.
 */
export function useFileDrop(allowed: boolean, take: (files: readonly File[]) => void): FileDrop {
  const [over, setOver] = useState(false)
  const concerns = ({ dataTransfer }: DragEvent): boolean =>
    allowed && dataTransfer?.types.includes('Files') === true
  return {
    over,
    target: {
      onDragOver: (event) => {
        if (!concerns(event)) return
        event.preventDefault()
        setOver(true)
      },
      onDragLeave: ({ currentTarget, relatedTarget }) => {
        if (!(currentTarget as Node).contains(relatedTarget as Node | null)) setOver(false)
      },
      onDrop: (event) => {
        if (!concerns(event)) return
        event.preventDefault()
        setOver(false)
        take([...(event.dataTransfer?.files ?? [])])
      },
    },
  }
}

/**
 * Makes the whole page a drop target for files.
 * @returns whether files are dragged over the page.
 */
export function usePageDrop(take: (files: readonly File[]) => void): boolean {
  const { over, target } = useFileDrop(true, take)
  const current = useRef(target)
  current.current = target
  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    document.addEventListener('dragover', (event) => current.current.onDragOver(event), { signal })
    document.addEventListener('dragleave', (event) => current.current.onDragLeave(event), {
      signal,
    })
    document.addEventListener('drop', (event) => current.current.onDrop(event), { signal })
    return () => stop.abort()
  }, [])
  return over
}
