/** Tabs. A query parameter of the URL contains the selected tab, so that a link can select it. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId } from 'preact/hooks'
import { currentUrl, setQuery } from '../router/router.ts'

/** One tab. */
export interface Tab {
  readonly id: string
  readonly label: ComponentChildren
  readonly content: () => ComponentChildren
}

/** Shows the content of the selected tab. Arrow keys move between the tabs. */
export function Tabs({
  tabs,
  parameter = 'tab',
  label,
}: {
  readonly tabs: readonly Tab[]
  /** Name of the query parameter. */
  readonly parameter?: string
  readonly label: string
}) {
  const base = useId()
  const wanted = currentUrl.value.query.get(parameter)
  const chosen = tabs.find(({ id }) => id === wanted) ?? tabs[0]
  // On a narrow screen, the selected tab may be outside the visible part of the row, so the row is
  // scrolled to it.
  useEffect(() => {
    const tab = document.getElementById(`${base}-${chosen?.id}`)
    const row = tab?.parentElement
    if (!tab || !row) return
    const end = tab.offsetLeft + tab.offsetWidth - row.offsetLeft
    if (end > row.scrollLeft + row.clientWidth) row.scrollLeft = end - row.clientWidth
    else row.scrollLeft = Math.min(row.scrollLeft, tab.offsetLeft - row.offsetLeft)
  }, [chosen?.id])
  if (!chosen) return null
  const choose = (id: string): void => setQuery({ [parameter]: id === tabs[0]?.id ? '' : id })
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const next = tabs[(tabs.indexOf(chosen) + step + tabs.length) % tabs.length]
    if (!next) return
    choose(next.id)
    document.getElementById(`${base}-${next.id}`)?.focus()
  }
  return (
    <div class="stack">
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map(({ id, label: name }) => (
          <button
            key={id}
            id={`${base}-${id}`}
            type="button"
            class="tab"
            role="tab"
            aria-selected={id === chosen.id}
            aria-controls={`${base}-panel`}
            tabIndex={id === chosen.id ? 0 : -1}
            onClick={() => choose(id)}
          >
            {name}
          </button>
        ))}
      </div>
      <div id={`${base}-panel`} role="tabpanel" aria-labelledby={`${base}-${chosen.id}`}>
        {chosen.content()}
      </div>
    </div>
  )
}
