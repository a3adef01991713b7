import { Bone } from "../../ui/states";

/** The page's places before there are figures, of their final size, so that nothing jumps. */
export function Skeleton() {
  return (
    <>
      <div className="tiles">
        {[1, 2, 3, 4].map((n) => (
          <div className="card tile" key={n}>
            <Bone height={0.875} width="40%" />
            <p />
            <Bone height={2} width="70%" />
          </div>
        ))}
      </div>
      <div className="card">
        <Bone height={24.5} />
      </div>
      <CardBones />
    </>
  );
}

export function CardBones() {
  return (
    <div className="cards">
      {[1, 2, 3].map((n) => (
        <div className="card" key={n}>
          <Bone height={18} />
        </div>
      ))}
    </div>
  );
}
