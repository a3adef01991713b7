import { useState } from "preact/compat";
import { present } from "../../api/answer";
import { documentOf, rulesFile, useCategories, useCategory } from "../../api/categories";
import type { Versioned } from "../../api/client";
import { useAccess } from "../../api/me";
import { useTenant } from "../../api/questions";
import type { Category } from "../../api/shapes";
import { useHere } from "../../app/router";
import { dimension } from "../../format/names";
import { refused } from "../../format/rights";
import { Answered, Bone, Warning } from "../../ui/states";
import { Toolbar } from "../../ui/toolbar";
import { CATEGORIES } from "../../url/link";
import { say } from "../../words/say";
import { CoverageCard, RulesCard, UnassignedCard } from "./coverage";
import type { CategoryDocument } from "./document";
import { type Start, startOf } from "./editing";
import { Editor } from "./editor";
import { First } from "./first";
import { History } from "./history";
import { Removal } from "./removal";
import { Tester } from "./tester";
import { ValuesCard } from "./values";

/** Who really pays: the cost categories, what they assign, and their rules. */
export function CategoriesPage() {
  const here = useHere();
  const name = here.tenant ?? "";
  const list = useCategories(name);
  const { isKnown, may } = useAccess(name);
  const tenant = present(useTenant(name));
  const canEdit = may("admin") && (tenant?.features.can_tag ?? false);
  const [started, setStarted] = useState<Start | null>(null);
  const items = present(list)?.items;
  const key = here.part ?? items?.[0]?.key ?? null;
  const start = (key: string, document: CategoryDocument) => setStarted({ key, document, etag: null, version: null });

  if (started)
    return (
      <>
        <Toolbar filters={false} compare={false} />
        <Editor start={started} onDone={() => setStarted(null)} />
      </>
    );
  return (
    <>
      <Toolbar
        compare={false}
        list="/cost-categories/{category_key}/coverage"
        {...(key && items?.length !== 0 ? { file: rulesFile(name, key) } : {})}
      />
      <Answered answer={list} skeleton={<Bone height={30} />}>
        {({ items: known }) => (
          <>
            {known.length > 0 && (
              <div className="tools">
                <nav className="segments" aria-label={say("Cost category")}>
                  {known.map((each) => (
                    <a
                      key={each.key}
                      href={here.to(here.view, `${CATEGORIES}/${encodeURIComponent(each.key)}`)}
                      aria-current={each.key === key ? "true" : undefined}
                    >
                      {dimension(`category:${each.key}`)}
                    </a>
                  ))}
                </nav>
                {canEdit && (
                  <button type="button" className="button plain" onClick={() => start("", { rules: [] })}>
                    {say("New category")}
                  </button>
                )}
              </div>
            )}
            {key === null || (known.length === 0 && here.part === null) ? (
              <First canEdit={canEdit} onStart={start} />
            ) : (
              <One key={key} categoryKey={key} canEdit={canEdit} />
            )}
            {isKnown && !may("admin") && <p className="note">{refused("admin")}</p>}
          </>
        )}
      </Answered>
    </>
  );
}

function One({ categoryKey, canEdit }: { categoryKey: string; canEdit: boolean }) {
  const { tenant } = useHere();
  const query = useCategory(tenant ?? "", categoryKey);
  const [editing, setEditing] = useState<Start | null>(null);
  const [removing, setRemoving] = useState(false);
  if (editing) return <Editor start={editing} onDone={() => setEditing(null)} />;
  return (
    <Answered answer={query} skeleton={<Bone height={30} />}>
      {(found) => (
        <>
          {found.body.warnings.map((each) => (
            <Warning key={`${each.path} ${each.message}`}>
              {each.path}: {each.message}
            </Warning>
          ))}
          <Cards
            found={found}
            onEdit={canEdit ? () => setEditing(startOf(found)) : null}
            onRemove={canEdit ? () => setRemoving(true) : null}
          />
          {removing && <Removal found={found} onClose={() => setRemoving(false)} />}
        </>
      )}
    </Answered>
  );
}

interface CardsProps {
  found: Versioned<Category>;
  onEdit: (() => void) | null;
  onRemove: (() => void) | null;
}

function Cards({ found, onEdit, onRemove }: CardsProps) {
  const category = found.body;
  const document = documentOf(category);
  return (
    <>
      <CoverageCard category={category} onEdit={onEdit} onRemove={onRemove} />
      <ValuesCard categoryKey={category.key} document={document} />
      <RulesCard categoryKey={category.key} document={document} />
      <div className="halves">
        <UnassignedCard categoryKey={category.key} canEdit={onEdit !== null} />
        <Tester categoryKey={category.key} document={document} />
      </div>
      <History found={found} canEdit={onEdit !== null} />
    </>
  );
}
