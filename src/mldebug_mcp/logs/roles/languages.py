"""Words of metrics in other languages than English, with the English words that they mean.

Latin letters stand here without their accents, as names are read without them. Russian words are inflected: of those
the beginning stands here that all their forms share.
"""

from __future__ import annotations

from mldebug_mcp.logs.roles.word_lists import grouped, lines

PHASES = grouped(
    "train: trainings entrenamiento entrainement treinamento treino addestramento 训练 訓練 学習 학습 훈련",
    "eval: validierung validierungs pruf zuruckgehalten validacion validacao validazione prueba teste "
    "验证 驗證 测试 測試 评估 評估 検証 テスト 評価 검증 테스트 평가",
)
STATISTICS = grouped(
    "mean: mittel mittlere mittlerer mittleres durchschnitt durchschnittliche durchschnittlicher media medio "
    "promedio moyenne moyen 平均 평균",
    "std: standardabweichung 標準偏差 标准差 표준편차",
    "max: maximo maximale 最大 최대",
    "min: minimo minimale 最小 최소",
    "best: beste bester bestes mejor melhor migliore meilleur meilleure 最佳 最好 最优 最良 最高 최고",
)
SYNONYMS = grouped(
    *lines("""
    loss: verlust verluste perdida perdidas perda perdita perte pertes 损失 損失 ロス 손실
    accuracy: genauigkeit exactitud exatidao acuracia accuratezza exactitude
    accuracy: 准确率 正确率 准确度 精度 正解率 正答率 정확도
    precision: prazision precisao precisione 精确率 查准率 適合率 정밀도
    recall: trefferquote sensibilidad exhaustividad rappel 召回率 查全率 再現率 재현율
    iou: 交并比
    r2: 決定係数 决定系数 결정계수
    error: fehler erro errore erreur 误差 誤差 错误率 오차
    perplexity: perplexitat perplejidad perplexidade perplessita perplexite 困惑度 パープレキシティ 퍼플렉시티 혼란도
    entropy: entropie entropia 熵 エントロピー 엔트로피
    learning: aprendizaje aprendizado aprendizagem apprendimento apprentissage
    rate: tasa taxa tasso taux
    learning rate: lernrate 学习率 學習率 学習率 학습률
    gradient: gradienten gradiente gradientes 梯度 勾配 기울기 그래디언트
    norm: norma norme 范数 範數 ノルム 노름
    weight: gewichte pesos poids 权重 重み 가중치
    step: schritt paso passo etape iteracion iteracao iterazione
    step: 步 步数 迭代 迭代次数 ステップ イテレーション 스텝
    steps: schritte pasos passos etapes
    epoch: epoche epochen epoca epocas epoque epoques 轮 轮次 轮数 エポック 에폭 에포크
    episode: episoden episodio episodios 回合 エピソード 에피소드
    time: zeit dauer tiempo tempo duracion duracao durata temps duree 时间 耗时 用时 時間 所要時間 시간
    elapsed: vergangen vergangene transcurrido decorrido trascorso ecoule 経過 경과
    elapsed time: laufzeit
    remaining time: restzeit
    remaining: verbleibend verbleibende restante restant rimanente 剩余 残り 남은
    memory: speicher memoria memoire メモリ 메모리
    gpu: grafik
    gpu memory: 显存
    host memory: 内存
    throughput: durchsatz debit 吞吐 吞吐量 スループット 처리량
    power: leistung 功率 電力 전력
    temperature: temp temperatur 温度 온도
    reward: belohnung recompensa ricompensa recompense 奖励 奖赏 回报 報酬 보상
    score: puntuacion puntaje pontuacao punteggio 得分 分数 スコア
    length: lange longitud comprimento lunghezza longueur 长度 長さ 長 길이
    completion: antwort respuesta resposta risposta reponse 回答 応答 응답
    policy: politica politique 策略 方策
    value: wert valor valore valeur 价值 価値
    kl: кл
    div: divergencia divergenz 散度
    approx: aprox
    fraction: anteil fraccion fracao frazione 比例
    clip: recorte 裁剪
    batch: lote 批次 バッチ 배치
    samples: beispiele bilder muestras amostras 样本 样本数 サンプル
    tokens: jeton jetons 词元 トークン 토큰
    discriminator: 判别器 識別器
    generator: 生成器
    real: 真
    fake: 假
    chosen: 胜出
    rejected: 落败
    preference: 偏好
    margin: 差
    router: 路由
    total: 总体
    current: 当前
    per: pro por 每
    of: de du del der des の 的
    s: sek sekunde sekunden segundos secondes secondi 秒 초
    ms: 毫秒 ミリ秒
    min: minuten minutos 分钟 分 분
    used: 占用
    h: stunden horas heures 小时
    万: 萬
    """)
)
"""Word → what it means, beside `lexicon.SYNONYMS`."""

STEMS = grouped(
    *lines("""
    loss: потер лосс
    accuracy: точност
    error: ошибк
    recall: полнот
    perplexity: перплекс
    entropy: энтроп
    gradient: градиент град
    norm: норм
    weight: вес
    step: шаг итерац
    epoch: эпох
    episode: эпизод
    train: обуч трениров трейн
    eval: вал валид тест провер отлож
    rate: скорост темп
    time: врем длительн
    remaining: остал остав
    elapsed: прошл прошед
    memory: памят
    token: токен
    samples: пример образ
    reward: награ вознагражд
    length: длин
    completion: ответ
    fraction: дол
    truncated: обрез
    mean: средн
    best: лучш
    max: макс
    std: откл
    in: ст стандартн
    batch: батч пакет
    value: ценност
    policy: политик
    throughput: пропускн
    s: с сек
    ms: мс
    min: мин
    h: ч час
    gpu: гпу
    gb: гб
    mb: мб
    """)
)
"""Beginning of a Russian word → what it means."""

COMPOUNDED = ("verlust", "genauigkeit", "损失", "損失", "准确率", "熵", "손실")
"""Words at whose beginning others may stand in one word, whatever these are: `Rekonstruktionsverlust`, 均衡损失."""
MOST_OF_AN_ENDING = 6
"""Letters by which a Russian word may be longer than its stem; chosen by hand."""
MOST_OF_A_STEM = max(map(len, STEMS))
LEAST_INFLECTED = 3
"""Letters of a stem from which on it may have an ending: a shorter one is an abbreviation that stands alone."""
